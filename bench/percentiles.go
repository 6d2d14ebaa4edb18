package bench

import "math"

// Percentiles is how long something took, by the share of all that took no longer.
type Percentiles struct {
	Name   string  `json:"name"` // of what was measured, the same for every subject
	Points []Point `json:"points"`

	counts *Histogram // of all rounds
}

// Point says that a share of all stay within a time.
type Point struct {
	Share        float64 `json:"share"`
	Milliseconds float64 `json:"ms"`
}

// pointsPerDecade is how many points there are from one nine of the share to the next.
const pointsPerDecade = 8

// AddPercentiles adds the latencies of a round to a series, under a name that is new or known.
func (r *Row) AddPercentiles(name string, h *Histogram) {
	for i := range r.Percentiles {
		if r.Percentiles[i].Name == name {
			r.Percentiles[i].add(h)
			return
		}
	}
	p := Percentiles{Name: name, counts: NewHistogram()}
	p.add(h)
	r.Percentiles = append(r.Percentiles, p)
}

// add counts another round and draws the points again: as many nines as there are latencies to
// tell them apart, then the greatest.
func (p *Percentiles) add(h *Histogram) {
	p.counts.Merge(h)
	p.Points = nil
	count := p.counts.Count()
	if count == 0 {
		return
	}
	for i := 1; ; i++ { // the least of all says little, and is far from the others
		beyond := math.Pow(10, -float64(i)/pointsPerDecade) // the share that takes longer
		if beyond*float64(count) < 1 {
			break
		}
		p.Points = append(p.Points, Point{1 - beyond, milliseconds(p.counts.Quantile(1 - beyond))})
	}
	p.Points = append(p.Points, Point{1, milliseconds(p.counts.Quantile(1))})
}

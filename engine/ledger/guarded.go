package ledger

import "sync"

// Guarded is a value that any goroutine may read and change. The zero Guarded has the zero value.
type Guarded[T any] struct {
	mu    sync.Mutex
	value T
}

// Load returns the value.
func (g *Guarded[T]) Load() T {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.value
}

// Set replaces the value.
func (g *Guarded[T]) Set(value T) { g.Update(func(v *T) { *v = value }) }

// Update calls change with the value. No other goroutine reads or changes it meanwhile.
func (g *Guarded[T]) Update(change func(*T)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.value)
}

package peer

import (
	"encoding/json"
	"maps"
	"net/http"
	"sync"
	"time"
)

// netHTTP is a service as one writes it by hand: records in a map behind a lock, encoded for each answer, with ledgerd's fields.
func netHTTP(t *told) *http.Server {
	var mu sync.RWMutex
	byKey := map[string]*AccountRecord{}
	for i := range t.Accounts {
		record := Record(i)
		byKey[record.Pubkey] = &record
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/account/{pubkey}", func(w http.ResponseWriter, r *http.Request) {
		mu.RLock()
		record := byKey[r.PathValue("pubkey")]
		mu.RUnlock()
		if record == nil {
			http.NotFound(w, r)
			return
		}
		body, _ := json.Marshal(record) // it has text and numbers only
		maps.Copy(w.Header(), t.Answer.Head)
		_, _ = w.Write(body) // the client may be gone
	})
	return &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second}
}

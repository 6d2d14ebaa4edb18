package exchange

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"ledgerd/snapshot/vfs"
)

const (
	// Path is below which a node's operators' listener answers with files of its snapshots.
	Path = "/snapshots/"

	// partTimeout is for one part to come: 280 kB/s are enough.
	partTimeout = time.Minute
	// peerTimeout is for a peer to accept a connection.
	peerTimeout = 2 * time.Second
)

// newClient returns what asks peers. It goes where a manifest says and nowhere else: by no proxy, and to no other address that a peer names.
func newClient(secure *tls.Config) *http.Client {
	dialer := net.Dialer{Timeout: peerTimeout}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: secure, TLSHandshakeTimeout: peerTimeout, DisableCompression: true,
			MaxResponseHeaderBytes: 16 << 10, IdleConnTimeout: partTimeout,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// get fills the room with a part that a peer gives.
func (x *Exchange) get(ctx context.Context, address string, f *File, part int, room []byte) error {
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+Path+f.Name, nil)
	if err != nil {
		return err
	}
	first := int64(part) * partBytes
	request.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", first, first+int64(len(room))-1))
	response, err := x.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusPartialContent {
		return fmt.Errorf("%s answers %d", address, response.StatusCode)
	}
	if _, err := io.ReadFull(response.Body, room); err != nil {
		return fmt.Errorf("%s ends amid a part: %w", address, err)
	}
	if hashOf(room) != f.Parts[part] {
		x.partsBad.Inc()
		return fmt.Errorf("%w: what %s gives is not what the manifest says", errBadPart, address)
	}
	return nil
}

// Open opens a file of a snapshot for a peer. fs.ErrNotExist: the directory has none of the name, or it is not to be shown.
func Open(disk vfs.FS, dir, name string) (vfs.File, error) {
	if !isFileName(name) {
		return nil, fs.ErrNotExist
	}
	return disk.Open(filepath.Join(dir, name))
}

// hashOf returns the hash of a part.
func hashOf(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

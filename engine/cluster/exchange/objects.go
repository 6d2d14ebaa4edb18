package exchange

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/cluster"
	"ledgerd/engine/ledger"
)

const (
	partTimeout = 20 * time.Second // for one part to be sent or received
	// missingTimeout is for how long an object that was listed must not be found until that is believed: a server that is
	// not up to date may have been asked.
	missingTimeout = 4 * time.Second
)

// keptFor is how many times as much as the log the snapshots may take: two are kept while another one is stored.
const keptFor = 4

// objects are what lies in the object store.
type objects struct {
	*Exchange
	ledger string // id of the stream's
	store  jetstream.ObjectStore
	stream jetstream.Stream // that the store is made of
	bucket string
	held   map[string]*jetstream.ObjectInfo // by name
	chunks map[string]uint64                // messages there are, by the object's own id
}

// open opens the object store of a ledger, or makes it, and lists what it holds. ErrNoSnapshot: it is not there and not made.
func (x *Exchange) open(ctx context.Context, ledgerID string, create bool) (*objects, error) {
	o := &objects{Exchange: x, ledger: ledgerID, bucket: x.config.Stream + "_snapshots"}
	js := x.cluster.JetStream()
	err := x.cluster.Retry(ctx, "looking for the snapshots", func(ctx context.Context) (err error) {
		o.store, err = js.ObjectStore(ctx, o.bucket)
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			if !create {
				return cluster.Permanent{Err: fmt.Errorf("%w: there is no object store", ErrNoSnapshot)}
			}
			o.store, err = js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
				Bucket: o.bucket, Description: "snapshots of the log", Storage: jetstream.FileStorage, Replicas: x.config.Replicas,
				MaxBytes: keptFor * x.config.MaxBytes, Placement: x.config.Placement(),
			})
		}
		if err == nil {
			o.stream, err = js.Stream(ctx, "OBJ_"+o.bucket)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return o, o.list(ctx)
}

// list looks what is there, as the server knows that leads the object store. The client's own list may be an old copy's: what
// was stored just now would be of no object, and be swept.
func (o *objects) list(ctx context.Context) error {
	o.held, o.chunks = make(map[string]*jetstream.ObjectInfo), make(map[string]uint64)
	var subjects map[string]uint64
	err := o.cluster.Retry(ctx, "listing the snapshots", func(ctx context.Context) error {
		info, err := cluster.LeaderInfo(ctx, o.stream, jetstream.WithSubjectFilter("$O."+o.bucket+".>"))
		if err == nil {
			subjects = info.State.Subjects
		}
		return err
	})
	if err != nil {
		return err
	}
	for subject, n := range subjects {
		if id, ok := strings.CutPrefix(subject, o.chunkSubject("")); ok {
			o.chunks[id] = n
			continue
		}
		i, err := o.info(ctx, subject)
		if err != nil {
			return err
		}
		if i != nil && !i.Deleted {
			o.held[i.Name] = i
		}
	}
	return nil
}

// info returns what an object's own message says; nil: it is gone. The server that leads answers.
func (o *objects) info(ctx context.Context, subject string) (i *jetstream.ObjectInfo, err error) {
	err = o.cluster.Retry(ctx, "listing the snapshots", func(ctx context.Context) error {
		m, err := o.stream.GetLastMsgForSubject(ctx, subject)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return nil
		case err != nil:
			return err
		}
		i = new(jetstream.ObjectInfo)
		return json.Unmarshal(m.Data, i)
	})
	return i, err
}

func (o *objects) chunkSubject(id string) string { return "$O." + o.bucket + ".C." + id }
func (o *objects) metaSubject(name string) string {
	return "$O." + o.bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
}

// complete reports whether an object is there with all its messages.
func (o *objects) complete(name string) bool {
	i := o.held[name]
	return i != nil && o.chunks[i.NUID] == uint64(i.Chunks)
}

// whole reports whether an object of the size is there with all its messages.
func (o *objects) whole(name string, size int) bool {
	return o.complete(name) && o.held[name].Size == uint64(size)
}

// put stores an object under a name.
func (o *objects) put(ctx context.Context, name string, content []byte) error {
	return o.cluster.RetryWithin(ctx, partTimeout, "storing a snapshot", func(ctx context.Context) error {
		_, err := o.store.Put(ctx, jetstream.ObjectMeta{Name: name}, bytes.NewReader(content))
		return err
	})
}

// get returns the content of an object of at most so many bytes, which was there when it was listed.
func (o *objects) get(ctx context.Context, name string, most int) (content []byte, err error) {
	if !o.complete(name) { // a reader would wait for what is missing
		return nil, fmt.Errorf("%w: %s lacks something", errBadPart, name)
	}
	begun := time.Now()
	err = o.cluster.RetryWithin(ctx, partTimeout, "fetching a snapshot", func(ctx context.Context) error {
		result, err := o.store.Get(ctx, name)
		if errors.Is(err, jetstream.ErrObjectNotFound) && time.Since(begun) >= missingTimeout {
			return cluster.Permanent{Err: fmt.Errorf("%w: %s is not there any more", ErrNoSnapshot, name)}
		}
		if err != nil {
			return err
		}
		defer result.Close()
		if info, err := result.Info(); err != nil || info.Size > uint64(most) {
			return cluster.Permanent{Err: fmt.Errorf("%w: %s is not what it should be", errBadPart, name)}
		}
		content, err = io.ReadAll(io.LimitReader(result, int64(most)+1))
		if errors.Is(err, jetstream.ErrDigestMismatch) || len(content) > most {
			return cluster.Permanent{Err: fmt.Errorf("%w: %s is not what it says", errBadPart, name)}
		}
		return err
	})
	return content, err
}

// remove removes an object, and leaves no note of it.
func (o *objects) remove(ctx context.Context, i *jetstream.ObjectInfo) error {
	if err := o.purge(ctx, o.metaSubject(i.Name)); err != nil {
		return err
	}
	return o.purge(ctx, o.chunkSubject(i.NUID))
}

func (o *objects) purge(ctx context.Context, subject string) error {
	return o.cluster.Retry(ctx, "removing snapshots", func(ctx context.Context) error {
		return o.stream.Purge(ctx, jetstream.WithPurgeSubject(subject))
	})
}

// usable returns the manifests of the newest snapshots that are there whole, at most so many, newest first.
func (o *objects) usable(ctx context.Context, most int) (all []*Manifest, err error) {
	for _, v := range o.versions() {
		m, err := o.manifest(ctx, v)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, cluster.ErrClosed), errors.Is(err, cluster.ErrFormat):
			return nil, err
		case err != nil:
			o.config.Logger.Warn("a snapshot that is offered cannot be used", "version", uint64(v), "error", err)
			continue
		}
		if all = append(all, m); len(all) == most {
			break
		}
	}
	return all, nil
}

// manifest reads a manifest of this stream. errBadPart: it, or a part that it names, is not there whole.
func (o *objects) manifest(ctx context.Context, v ledger.Version) (*Manifest, error) {
	b, err := o.get(ctx, manifestName(v), maxManifestBytes)
	if err != nil {
		return nil, err
	}
	m, err := decodeManifest(b)
	switch {
	case err != nil:
		return nil, err
	case m.Version != v:
		return nil, fmt.Errorf("%w: the manifest of version %d is of version %d", errBadPart, v, m.Version)
	case m.Ledger != o.ledger:
		return nil, fmt.Errorf("%w: the manifest of version %d belongs to ledger %s", cluster.ErrRecreated, v, m.Ledger)
	}
	for i := range m.Files {
		f := &m.Files[i]
		for p := range f.Parts {
			if !o.whole(f.object(p), f.partSize(p)) {
				return nil, fmt.Errorf("%w: %s lacks something", errBadPart, f.object(p))
			}
		}
	}
	return m, nil
}

// versions returns of which versions there are manifests, newest first.
func (o *objects) versions() []ledger.Version {
	var all []ledger.Version
	for name := range o.held {
		if v, ok := manifestVersion(name); ok {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all
}

// hashOf returns the hash of a part.
func hashOf(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/ledger"
)

// partPatience is how long sending or receiving one part may take until it is tried again.
const partPatience = 20 * time.Second

// objects are what lies in the object store.
type objects struct {
	store  jetstream.ObjectStore
	stream jetstream.Stream // that the store is made of
	bucket string
	held   map[string]*jetstream.ObjectInfo // by name
	chunks map[string]uint64                // messages there are, by the object's own id
}

// errNoBucket says that nothing was ever offered.
var errNoBucket = fmt.Errorf("%w: there is no object store", ErrNoSnapshot)

func (c *Cluster) snapshotBucket() string { return c.config.Stream + "_snapshots" }

// objects opens the object store, and makes it if need be and asked to. errNoBucket: it is not there.
func (c *Cluster) objects(ctx context.Context, make bool) (o *objects, err error) {
	bucket := c.snapshotBucket()
	err = c.insist(ctx, "looking for the snapshots", func(ctx context.Context) error {
		store, err := c.js.ObjectStore(ctx, bucket)
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			if !make {
				return errNoBucket
			}
			store, err = c.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
				Bucket: bucket, Description: "snapshots of the log", Storage: jetstream.FileStorage, Replicas: c.config.replicas(),
			})
		}
		if err != nil {
			return err
		}
		stream, err := c.js.Stream(ctx, "OBJ_"+bucket)
		o = &objects{store: store, stream: stream, bucket: bucket}
		return err
	})
	return o, err
}

// list looks what is there, as the server knows that leads the object store. The client's own list may be an old copy's: what
// was stored just now would be of no object, and be swept.
func (o *objects) list(ctx context.Context, c *Cluster) error {
	o.held, o.chunks = make(map[string]*jetstream.ObjectInfo), make(map[string]uint64)
	var subjects map[string]uint64
	err := c.insist(ctx, "listing the snapshots", func(ctx context.Context) error {
		info, err := o.stream.Info(ctx, jetstream.WithSubjectFilter("$O."+o.bucket+".>"))
		if err != nil {
			return err
		}
		subjects = info.State.Subjects
		return led(info)
	})
	if err != nil {
		return err
	}
	for subject, n := range subjects {
		if id, ok := strings.CutPrefix(subject, o.chunkSubject("")); ok {
			o.chunks[id] = n
			continue
		}
		i, err := o.info(ctx, c, subject)
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
func (o *objects) info(ctx context.Context, c *Cluster, subject string) (i *jetstream.ObjectInfo, err error) {
	question, err := json.Marshal(map[string]string{"last_by_subj": subject})
	if err != nil {
		return nil, err
	}
	err = c.insist(ctx, "listing the snapshots", func(ctx context.Context) error {
		m, err := c.conn.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET.OBJ_"+o.bucket, question)
		if err != nil {
			return err
		}
		var answer struct {
			Error   *jetstream.APIError `json:"error"`
			Message struct {
				Data []byte `json:"data"`
			} `json:"message"`
		}
		switch err := json.Unmarshal(m.Data, &answer); {
		case err != nil:
			return err
		case answer.Error != nil && answer.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
			return nil
		case answer.Error != nil:
			return answer.Error
		}
		i = new(jetstream.ObjectInfo)
		return json.Unmarshal(answer.Message.Data, i)
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
func (o *objects) put(ctx context.Context, c *Cluster, name string, content []byte) error {
	return c.patiently(ctx, "storing a snapshot", func(ctx context.Context) error {
		_, err := o.store.Put(ctx, jetstream.ObjectMeta{Name: name}, bytes.NewReader(content))
		return err
	})
}

// get returns the content of an object of at most so many bytes, which was there when it was listed.
func (o *objects) get(ctx context.Context, c *Cluster, name string, most int) (content []byte, err error) {
	if !o.complete(name) { // a reader would wait for what is missing
		return nil, fmt.Errorf("%w: %s lacks something", errBadPart, name)
	}
	missing := 0
	err = c.patiently(ctx, "fetching a snapshot", func(ctx context.Context) error {
		result, err := o.store.Get(ctx, name)
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			if missing++; missing < goneLooks {
				return err // a copy may have been asked that is not up to date
			}
			return fmt.Errorf("%w: %s is not there any more", ErrNoSnapshot, name)
		}
		if err != nil {
			return err
		}
		defer result.Close()
		if info, err := result.Info(); err != nil || info.Size > uint64(most) {
			return fmt.Errorf("%w: %s is not what it should be", errBadPart, name)
		}
		content, err = io.ReadAll(io.LimitReader(result, int64(most)+1))
		if errors.Is(err, jetstream.ErrDigestMismatch) || len(content) > most {
			return fmt.Errorf("%w: %s is not what it says", errBadPart, name)
		}
		return err
	})
	return content, err
}

// errBadPart says that what is stored is not what the manifest says.
var errBadPart = errors.New("damaged")

// patiently is insist for what takes longer than a request.
func (c *Cluster) patiently(ctx context.Context, what string, attempt func(context.Context) error) error {
	defer c.clear(what)
	for {
		bounded, cancel := context.WithTimeout(ctx, partPatience)
		stop := context.AfterFunc(c.ctx, cancel)
		err := attempt(bounded)
		stop()
		cancel()
		switch {
		case err == nil, permanent(err), errors.Is(err, errBadPart), errors.Is(err, ErrNoSnapshot):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		c.troubled(what, err)
		if err := c.sleep(ctx, longestPause); err != nil {
			return err
		}
	}
}

// remove removes an object, and leaves no note of it.
func (o *objects) remove(ctx context.Context, c *Cluster, i *jetstream.ObjectInfo) error {
	return c.insist(ctx, "removing snapshots", func(ctx context.Context) error {
		if err := o.stream.Purge(ctx, jetstream.WithPurgeSubject(o.metaSubject(i.Name))); err != nil {
			return err
		}
		return o.stream.Purge(ctx, jetstream.WithPurgeSubject(o.chunkSubject(i.NUID)))
	})
}

// manifest reads a manifest of this stream. errBadPart: it, or a part that it names, is not there whole.
func (o *objects) manifest(ctx context.Context, c *Cluster, v ledger.Version) (*Manifest, error) {
	b, err := o.get(ctx, c, manifestName(v), maxManifestBytes)
	if err != nil {
		return nil, err
	}
	m, err := decodeManifest(b)
	switch {
	case err != nil:
		return nil, err
	case m.Version != v:
		return nil, fmt.Errorf("%w: the manifest of version %d is of version %d", errBadPart, v, m.Version)
	case m.Ledger != c.knownID():
		return nil, fmt.Errorf("%w: the manifest of version %d belongs to ledger %s", ErrRecreated, v, m.Ledger)
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
	sortNewest(all)
	return all
}

// hashOf returns the hash of a part.
func hashOf(b []byte) PartHash { return sha256.Sum256(b) }

// Command image writes the container image of ledgerd as docker load and podman load read it: one static program, and what it needs to run as nobody in
// particular. No daemon, no base image and no network take part, and the same input gives the same bytes.
//
//	image PROGRAM LICENSE ARCHITECTURE VERSION SECONDS FILE
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user owns the data and the process. Its number is the one that images without a user of their own agree on.
const user = 65532

const dataDir = "/var/lib/ledgerd"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 6 {
		return errors.New("want PROGRAM LICENSE ARCHITECTURE VERSION SECONDS FILE")
	}
	program, license, arch, version, file := args[0], args[1], args[2], args[3], args[5]
	seconds, err := strconv.ParseInt(args[4], 10, 64)
	if err != nil {
		return fmt.Errorf("the time of the image is not in seconds: %w", err)
	}
	made := time.Unix(seconds, 0).UTC()
	content, err := files(program, license, made)
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	if err != nil {
		return fmt.Errorf("cannot make the layer: %w", err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return fmt.Errorf("cannot add the layer: %w", err)
	}
	image, err = mutate.ConfigFile(image, configuration(image, arch, version, made))
	if err != nil {
		return fmt.Errorf("cannot configure the image: %w", err)
	}
	tag, err := name.NewTag("ledgerd:" + version)
	if err != nil {
		return fmt.Errorf("cannot name the image: %w", err)
	}
	return tarball.WriteToFile(file, tag, image)
}

// files returns the archive of all files of the image.
func files(program, license string, made time.Time) ([]byte, error) {
	binary, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	terms, err := os.ReadFile(license)
	if err != nil {
		return nil, err
	}
	var roots []byte
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a file of certificates cannot say what else must be checked
			roots = append(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
		}
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, f := range []struct {
		name    string
		mode    int64
		owner   int
		content []byte
	}{
		{"etc/passwd", 0o644, 0, fmt.Appendf(nil, "ledgerd:x:%d:%d::%s:/nonexistent\n", user, user, dataDir)},
		{"etc/group", 0o644, 0, fmt.Appendf(nil, "ledgerd:x:%d:\n", user)},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, 0, roots},
		{"usr/bin/ledgerd", 0o755, 0, binary},
		{"usr/share/doc/ledgerd/LICENSE", 0o644, 0, terms},
		{dataDir[1:] + "/", 0o750, user, nil},
	} {
		err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.content)), ModTime: made})
		if err == nil {
			_, err = w.Write(f.content)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot archive %s: %w", f.name, err)
		}
	}
	return archive.Bytes(), w.Close()
}

// configuration returns how the image is run: from outside a container its listeners are reached at their own ports.
func configuration(image v1.Image, arch, version string, made time.Time) *v1.ConfigFile {
	config, err := image.ConfigFile()
	if err != nil {
		panic(err) // it was made here
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: made}
	config.History = []v1.History{{Created: config.Created, CreatedBy: "make release"}}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", user, user), WorkingDir: dataDir, StopSignal: "SIGTERM",
		Entrypoint: []string{"/usr/bin/ledgerd"}, Cmd: []string{"serve"},
		Env:          []string{"LEDGERD_LISTEN=:8080", "LEDGERD_OPS_LISTEN=:8081", "LEDGERD_DATA_DIR=" + dataDir},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}, "8081/tcp": {}},
		Volumes:      map[string]struct{}{dataDir: {}},
		Labels: map[string]string{
			"org.opencontainers.image.title": "ledgerd", "org.opencontainers.image.version": version,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return config
}

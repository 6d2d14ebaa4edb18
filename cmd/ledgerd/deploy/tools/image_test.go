package tools

import (
	"bufio"
	"crypto/x509"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// testImage reads an image back by its name, and runs it as a container would.
func testImage(t *testing.T, file, arch, version string) {
	tag, err := name.NewTag("ledgerd:" + version)
	must(t, err)
	image, err := tarball.ImageFromPath(file, &tag)
	must(t, err)
	must(t, validate.Image(image))
	config, err := image.ConfigFile()
	must(t, err)
	c := config.Config
	got := []any{config.Platform().String(), c.User, c.Entrypoint, c.Cmd, c.ExposedPorts, c.Volumes}
	want := []any{"linux/" + arch, "65532:65532", []string{"/usr/bin/ledgerd"}, []string{"serve"},
		map[string]struct{}{"8080/tcp": {}, "8081/tcp": {}}, map[string]struct{}{"/var/lib/ledgerd": {}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the image is %v, want %v", got, want)
	}
	if arch == runtime.GOARCH && os.Geteuid() == 0 {
		runImage(t, image, c)
	}
}

// runImage starts the program of an image in its files, as its user, with its environment, and asks it a question.
func runImage(t *testing.T, image v1.Image, config v1.Config) {
	root := t.TempDir()
	unpack := exec.Command("tar", "--extract", "--same-owner", "--directory", root)
	unpack.Stdin = mutate.Extract(image)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("cannot unpack the layer: %v: %s", err, out)
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM([]byte(read(t, filepath.Join(root, "etc/ssl/certs/ca-certificates.crt")))) {
		t.Error("the image holds no certificates: the program cannot tell whether a node of https: is who it says")
	}
	node := exec.CommandContext(t.Context(), config.Entrypoint[0], append(config.Cmd, "--listen=127.0.0.1:0", "--ops-listen=")...)
	node.Env, node.Dir = config.Env, config.WorkingDir
	node.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}, Pdeathsig: syscall.SIGKILL}
	out, err := node.StdoutPipe()
	must(t, err)
	must(t, node.Start())
	var url string
	for lines := bufio.NewScanner(out); url == "" && lines.Scan(); {
		url = regexp.MustCompile(`http://\S+/status`).FindString(lines.Text())
	}
	answer, err := http.Get(url)
	must(t, err)
	answer.Body.Close()
	must(t, node.Process.Signal(syscall.SIGTERM))
	if err := node.Wait(); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("/status: %d, want 200; a clean stop: %v", answer.StatusCode, err)
	}
	if kept, err := os.ReadDir(filepath.Join(root, config.WorkingDir)); err != nil || len(kept) == 0 {
		t.Errorf("the node left %v, %v; want its data", kept, err)
	}
}

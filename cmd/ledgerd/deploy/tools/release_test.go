// Package tools holds what makes a release and its tests; make release and make release-test run them.
package tools

import (
	"debug/buildinfo"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// all asks for what takes minutes: every architecture, and a fresh Debian instead of this machine's own files.
var all = os.Getenv("LEDGERD_RELEASE_ALL") != ""

func TestRelease(t *testing.T) {
	archs := []string{runtime.GOARCH}
	if all {
		archs = []string{"amd64", "arm64"}
	}
	release := filepath.Join(t.TempDir(), "release")
	run(t, "", "../release.sh", append([]string{release}, archs...)...)
	_, version, _ := strings.Cut(strings.TrimSuffix(one(t, release, "ledgerd_*_"+archs[0]+".deb"), "_"+archs[0]+".deb"), "release/ledgerd_")

	t.Run("is the same from a copy of the sources elsewhere", func(t *testing.T) { sameAgain(t, release, version, archs) })
	t.Run("has checksums of all", func(t *testing.T) {
		files, _ := filepath.Glob(release + "/*")
		if sums := strings.Count(run(t, release, "sha256sum", "--check", "--strict", "SHA256SUMS"), ": OK\n"); sums != len(files)-1 {
			t.Errorf("%d files have checksums of %d", sums, len(files)-1)
		}
	})
	for _, arch := range archs {
		archive := t.TempDir()
		run(t, archive, "tar", "--extract", "--strip-components=1", "--file", filepath.Join(release, "ledgerd_"+version+"_linux_"+arch+".tar.gz"))
		for _, program := range []string{"ledgerd", "ledgerbench", "ledgercluster"} {
			t.Run(program+" for "+arch, func(t *testing.T) {
				binary := filepath.Join(archive, program)
				isStatic(t, binary, arch)
				isListed(t, binary, filepath.Join(release, program+"_"+version+"_linux_"+arch+".cdx.json"), version)
				if arch == runtime.GOARCH {
					isDescribed(t, binary, version)
				}
			})
		}
		deb := filepath.Join(release, "ledgerd_"+version+"_"+arch+".deb")
		t.Run("lintian for "+arch, func(t *testing.T) { run(t, "", need(t, "lintian"), "--fail-on", "error,warning", deb) })
		t.Run("image for "+arch, func(t *testing.T) {
			testImage(t, filepath.Join(release, "ledgerd_"+version+"_linux_"+arch+".image.tar"), arch, version)
		})
	}
	t.Run("unit", func(t *testing.T) {
		run(t, "", need(t, "systemd-analyze"), "security", "--no-pager", "--offline=true", "--threshold=20", "../ledgerd.service")
	})
	t.Run("package", func(t *testing.T) { testLife(t, release) })
}

// sameAgain makes the release from files alone: without git, under another path.
func sameAgain(t *testing.T, release, version string, archs []string) {
	dir := t.TempDir()
	run(t, "", "sh", "-c", `git -C ../../../.. ls-files --cached --others --exclude-standard -z | tar -C ../../../.. --null -T - -c | tar -C "$0" -x`, dir)
	t.Setenv("VERSION", version)
	t.Setenv("REVISION", strings.TrimSpace(run(t, "", "git", "describe", "--always", "--exclude", "*", "--abbrev=40", "--dirty=+dirty")))
	t.Setenv("SOURCE_DATE_EPOCH", strings.TrimSpace(run(t, "", "git", "log", "-1", "--format=%ct")))
	again := filepath.Join(t.TempDir(), "again")
	run(t, "", dir+"/cmd/ledgerd/deploy/release.sh", append([]string{again}, archs...)...)
	run(t, "", "diff", release+"/SHA256SUMS", again+"/SHA256SUMS")
}

// isStatic checks that a program asks the system for no loader and no library.
func isStatic(t *testing.T, binary, arch string) {
	file, err := elf.Open(binary)
	must(t, err)
	defer file.Close()
	if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]; file.Machine != want {
		t.Errorf("the program is for %v, want %v", file.Machine, want)
	}
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			t.Errorf("the program has a part %v: it is not static", part.Type)
		}
	}
}

// isListed checks that the list of what a program is made of names each of its modules.
func isListed(t *testing.T, binary, list, version string) {
	info, err := buildinfo.ReadFile(binary)
	must(t, err)
	content := read(t, list)
	for _, want := range []string{`"specVersion": "1.6"`, "pkg:golang/ledgerd@v" + version, "pkg:golang/std@" + info.GoVersion} {
		if !strings.Contains(content, want) {
			t.Errorf("%s does not contain %q", list, want)
		}
	}
	for _, module := range info.Deps {
		if want := "pkg:golang/" + module.Path + "@" + module.Version; !strings.Contains(content, want) {
			t.Errorf("%s does not contain %q", list, want)
		}
	}
}

// isDescribed checks that the program says its version and that its manual page has each command and flag that its help names.
func isDescribed(t *testing.T, binary, version string) {
	if got, want := run(t, "", binary, "--version"), filepath.Base(binary)+" "+version+" (revision "; !strings.HasPrefix(got, want) {
		t.Errorf("--version: %q, want %q…", got, want)
	}
	t.Setenv("MANWIDTH", "100")
	page := run(t, "", need(t, "man"), "--warnings", "--local-file", filepath.Join(filepath.Dir(binary), "man", filepath.Base(binary)+".1"))
	help := run(t, "", binary, "--help")
	for _, command := range regexp.MustCompile(`(?m)^  ([a-z]+(?: [a-z]+)?)  `).FindAllStringSubmatch(help, -1) {
		if !strings.Contains(page, "\n"+strings.ToUpper(command[1])+"\n") {
			t.Errorf("the manual page has no section of %q", command[1])
		}
		help += run(t, "", binary, append(strings.Fields(command[1]), "--help")...)
	}
	for _, flag := range regexp.MustCompile(`(?m)^ .*?(--[a-z-]+)`).FindAllStringSubmatch(help, -1) {
		if !strings.Contains(page, flag[1]) {
			t.Errorf("the manual page does not name %s", flag[1])
		}
	}
}

// testLife installs, upgrades and removes the package in a container that systemd runs.
func testLife(t *testing.T, release string) {
	nspawn := need(t, "systemd-nspawn")
	if os.Geteuid() != 0 {
		t.Skip("only root starts containers")
	}
	old, said, root := filepath.Join(t.TempDir(), "old"), t.TempDir(), t.TempDir()
	t.Setenv("VERSION", "0.0.1")
	run(t, "", "../release.sh", old, runtime.GOARCH)
	t.Setenv("VERSION", "")
	if all {
		mirrors := strings.Fields(run(t, "", "apt-get", "indextargets", "--format", "$(REPO_URI)", "Codename: bookworm", "Created-By: Packages"))
		run(t, "", need(t, "debootstrap"), "--variant=minbase", "--include=curl,systemd", "bookworm", root, mirrors[0])
	}
	life, err := filepath.Abs("testdata/life.sh")
	must(t, err)
	// Where root is empty, it is this machine's own root, in a mount namespace that ends with the container; its writes go to memory.
	const start = `[ -e "$0/etc" ] || mount --bind / "$0"; exec "$@"`
	args := []string{"300", "unshare", "--mount", "sh", "-ec", start, root,
		nspawn, "--quiet", "--register=no", "--keep-unit", "--private-network", "--volatile=overlay", "--link-journal=no", "--directory=" + root,
		"--bind-ro=" + one(t, old, "*_"+runtime.GOARCH+".deb") + ":/mnt/old.deb", "--bind-ro=" + one(t, release, "*_"+runtime.GOARCH+".deb") + ":/mnt/new.deb",
		"--bind-ro=" + life + ":/mnt/life.sh", "--bind=" + said + ":/mnt/said"}
	boot := func(program string) ([]byte, error) {
		return exec.Command("timeout", append(slices.Clip(args), "--boot", "systemd.run="+program,
			"systemd.run_success_action=exit", "systemd.run_failure_action=exit")...).CombinedOutput()
	}
	if out, err := boot("/bin/true"); err != nil {
		t.Skipf("this machine starts no containers: %v: %s", err, out)
	}
	if out, err := boot("/mnt/life.sh"); err != nil {
		content, _ := os.ReadFile(said + "/life")
		t.Fatalf("%v: %s\n%s", err, out, content)
	}
}

// run returns what a program prints, and fails the test if the program fails.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir = dir
	var failures strings.Builder
	command.Stderr = &failures
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s%s", name, strings.Join(args, " "), err, out, failures.String())
	}
	return string(out)
}

// need returns a program that not every machine has, or skips the test.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skip(err)
	}
	return path
}

func one(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s in %s: %v, %v; want one file", pattern, dir, found, err)
	}
	return found[0]
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	return string(content)
}

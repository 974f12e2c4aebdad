package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// need skips a test where one of these tools is not here.
func need(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not here", tool)
		}
	}
}

// output runs a command that is to end well.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return string(out)
}

// makePackages makes the .deb and .rpm of a version of bonsai.
func makePackages(t *testing.T, version string) (deb, rpm string) {
	t.Helper()
	need(t, "nfpm", "dpkg-deb")
	if testing.Short() || raceDetector {
		t.Skip("the run is to be short, or is for races, of which there are none here")
	}
	dir := t.TempDir()
	output(t, "dist/package.sh", version, "amd64", dir)
	return filepath.Join(dir, "bonsai_"+version+"_amd64.deb"), filepath.Join(dir, "bonsai-"+version+"-1.x86_64.rpm")
}

// packaged are the files of both packages.
var packaged = []string{
	"/etc/bonsai/bonsai.yaml", "/usr/bin/bonsai", "/usr/lib/systemd/system/bonsai.service", "/usr/lib/systemd/system/bonsai.socket",
	"/usr/lib/sysusers.d/bonsai.conf", "/usr/share/doc/bonsai/alerts.yaml", "/usr/share/doc/bonsai/bonsai.example.yaml",
	"/usr/share/doc/bonsai/copyright", "/usr/share/doc/bonsai/dashboard.json", "/usr/share/man/man8/bonsai.8.gz",
}

func TestPackages(t *testing.T) {
	deb, rpm := makePackages(t, "1.2.3")
	for field, want := range map[string]string{"Package": "bonsai", "Version": "1.2.3", "Architecture": "amd64"} {
		if got := strings.TrimSpace(output(t, "dpkg-deb", "-f", deb, field)); got != want {
			t.Errorf("%s: %q, want %q", field, got, want)
		}
	}
	if got := output(t, "dpkg-deb", "-I", deb, "conffiles"); got != "/etc/bonsai/bonsai.yaml\n" {
		t.Errorf("conffiles: %q", got)
	}
	dir := t.TempDir()
	output(t, "dpkg-deb", "-x", deb, dir)
	var files []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, strings.TrimPrefix(path, dir))
		}
		return err
	})
	if slices.Sort(files); err != nil || !slices.Equal(files, packaged) {
		t.Errorf("files: %q, %v", files, err)
	}
	for file, mode := range map[string]os.FileMode{"usr/bin/bonsai": 0o755, "etc/bonsai/bonsai.yaml": 0o644, "usr/lib/systemd/system/bonsai.service": 0o644} {
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, want %v", file, info.Mode(), mode)
		}
	}
	if page := output(t, "gzip", "-dc", filepath.Join(dir, "usr/share/man/man8/bonsai.8.gz")); !strings.Contains(page, ".TH BONSAI 8") {
		t.Errorf("the manual page begins with %.60q", page)
	}
	if runtime.GOARCH == "amd64" && runtime.GOOS == "linux" {
		if got := output(t, filepath.Join(dir, "usr/bin/bonsai"), "--version"); !strings.HasPrefix(got, "bonsai 1.2.3 ") {
			t.Error(got)
		}
	}
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		cmd := exec.Command("sh", "-n")
		cmd.Stdin = strings.NewReader(output(t, "dpkg-deb", "-I", deb, script))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %s", script, out)
		}
	}
	t.Run("rpm", func(t *testing.T) {
		need(t, "rpm")
		query := func(format string) string { return output(t, "rpm", "-qp", "--qf", format, rpm) }
		if got := query("%{NAME} %{VERSION} %{ARCH} %{LICENSE}"); got != "bonsai 1.2.3 x86_64 BSD-3-Clause" {
			t.Error(got)
		}
		// %config(noreplace) is bits 0 and 4 of a file's flags.
		got := strings.Fields(query(`[%{FILENAMES}=%{FILEFLAGS}\n]`))
		want := slices.Clone(packaged)
		for i, file := range want {
			want[i] += "=" + map[bool]string{true: strconv.Itoa(1 | 1<<4), false: "0"}[strings.HasPrefix(file, "/etc")]
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("files: %q", got)
		}
	})
}

// installs is what an operator does with packages, on a copy of this machine that is gone afterwards.
const installs = `set -e
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
cp "$2" "$1/root/old.deb"; cp "$3" "$1/root/new.deb"
exec chroot "$1/root" sh -ec '
	dpkg -i /old.deb
	bonsai --version
	getent passwd bonsai
	mkdir -p /run/bonsai /var/lib/bonsai
	bonsai check --config /etc/bonsai/bonsai.yaml
	echo "identity: mine" >>/etc/bonsai/bonsai.yaml
	dpkg -i /new.deb
	bonsai --version
	echo kept: $(tail -n 1 /etc/bonsai/bonsai.yaml)
	touch /var/lib/bonsai/cache
	dpkg -r bonsai
	echo removed: $(ls /usr/bin/bonsai 2>/dev/null) $(ls /etc/bonsai /var/lib/bonsai)
	dpkg -P bonsai
	echo purged: $(ls -d /etc/bonsai/bonsai.yaml /var/lib/bonsai 2>/dev/null)
'`

// Installed, upgraded, removed and purged: the user is there, the operator's configuration stays as it
// is until the purge.
func TestPackageInstalls(t *testing.T) {
	if os.Geteuid() != 0 || runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("it takes root on Linux, amd64")
	}
	need(t, "dpkg", "unshare", "chroot")
	dir := t.TempDir()
	if out, err := exec.Command("unshare", "-m", "sh", "-ec", `mount -t tmpfs none "$0" && cd "$0" && mkdir u w r && mount -t overlay overlay -o lowerdir=/,upperdir=u,workdir=w r`,
		dir).CombinedOutput(); err != nil {
		t.Skipf("no overlay here: %s", out)
	}
	old, _ := makePackages(t, "1.0.0")
	renewed, _ := makePackages(t, "1.1.0")
	out := output(t, "unshare", "-m", "sh", "-c", installs, "sh", dir, old, renewed)
	for _, want := range []string{`(?m)^bonsai 1\.0\.0 `, `(?m)^bonsai:x:\d+:\d+:.*:/var/lib/bonsai:`, `(?m)^/etc/bonsai/bonsai.yaml: ok$`,
		`(?m)^bonsai 1\.1\.0 `, `(?m)^kept: identity: mine$`, `(?m)^removed: /etc/bonsai: bonsai.yaml /var/lib/bonsai: cache$`, `(?m)^purged:$`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %s in %s", want, out)
		}
	}
}

// dockerfile is what a Dockerfile says, as far as ours goes.
type dockerfile struct {
	run    string      // of the first stage
	copied [][2]string // from the first stage to the last
	user   string
	health []string
	entry  []string
	from   string // of the last stage
}

func readDockerfile(t *testing.T) (d dockerfile) {
	t.Helper()
	content, err := os.ReadFile("dist/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	words := regexp.MustCompile(`"([^"]*)"`)
	list := func(text string) (list []string) {
		for _, m := range words.FindAllStringSubmatch(text, -1) {
			list = append(list, m[1])
		}
		return list
	}
	for line := range strings.Lines(string(content)) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch instruction {
		case "FROM":
			d.from = rest
		case "RUN":
			d.run = rest // the last one builds
		case "COPY":
			if f := strings.Fields(rest); strings.HasPrefix(f[0], "--from") {
				d.copied = append(d.copied, [2]string{f[len(f)-2], f[len(f)-1]})
			}
		case "USER":
			d.user = rest
		case "HEALTHCHECK":
			d.health = list(rest)
		case "ENTRYPOINT":
			d.entry = list(rest)
		}
	}
	return d
}

// The image's build command makes a binary that runs alone in an empty root, as the image's user and by its
// entry point, and is healthy by its check. There is no Docker in it.
func TestDockerfile(t *testing.T) {
	if os.Geteuid() != 0 || runtime.GOOS != "linux" {
		t.Skip("it takes root on Linux to be in another root")
	}
	need(t, "unshare", "ip", "chroot", "nsenter", "dig")
	if out, err := exec.Command("unshare", "-n", "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Skipf("no namespace here: %v, %s", err, out)
	}
	d := readDockerfile(t)
	if d.from != "scratch" || d.user != "65532:65532" || len(d.copied) != 2 {
		t.Fatalf("%+v", d)
	}
	build, root := openDir(t), openDir(t)
	// The command writes to the root of the build's image; here, below a folder.
	command := strings.NewReplacer("-o /", "-o "+build+"/", "mkdir /", "mkdir -p "+build+"/").Replace(d.run)
	sh := exec.Command("sh", "-c", command)
	sh.Dir = "../.."
	if out, err := sh.CombinedOutput(); err != nil {
		t.Skipf("no go to build with: %v: %s", err, out)
	}
	for _, c := range d.copied {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, c[1])), 0o755); err != nil {
			t.Fatal(err)
		}
		output(t, "cp", "-r", filepath.Join(build, c[0]), filepath.Join(root, c[1]))
	}
	if err := os.Chown(filepath.Join(root, "run/bonsai"), 65532, 65532); err != nil {
		t.Fatal(err)
	}
	// As Docker has it: a network of its own, where no port is root's alone.
	args := append([]string{"-n", "sh", "-c", `ip link set lo up && echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start && exec chroot --userspec="$0" "$@"`, d.user, root}, d.entry...)
	p, _ := launchCommand(t, exec.Command("unshare", append(args, "--listen", "0.0.0.0:53")...))
	if line := p.line(t, "locked in"); !strings.Contains(line, "seccomp=on") || !strings.Contains(line, "capabilities=none") {
		t.Error(line)
	}
	out := output(t, "nsenter", "-t", strconv.Itoa(p.cmd.Process.Pid), "-n", "dig", "@127.0.0.1", "localhost", "+short")
	if out != "127.0.0.1\n" {
		t.Errorf("the answer is %q", out)
	}
	check := func() (string, error) {
		cmd := exec.Command(d.health[0], d.health[1:]...)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := check(); err != nil || !strings.Contains(out, "ready") {
		t.Errorf("health: %s, %v", out, err)
	}
	p.stop(t)
	if out, err := check(); err == nil {
		t.Errorf("health of one that has stopped: %s", out)
	}
	if fmt.Sprint(d.entry) != "[/bonsai --control /run/bonsai/control]" {
		t.Errorf("entry point %q", d.entry)
	}
}

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// machine boots systemd on a copy of this machine, runs a script there and prints what it printed. There is
// no network but its own, so that nothing is asked of anybody. $1 is a folder, $2 the script, $3 the
// checkout, a copy of which is at /checkout there, wherever it lies here.
const machine = `set -e
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/root" "$1/changed"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
cp "$2" "$1/root/script"
! tool=$(command -v nfpm) || cp "$tool" "$1/root/usr/local/bin/" # /tmp is empty there
: >"$1/root/etc/machine-id"
cat >"$1/root/etc/systemd/system/script.service" <<END
[Unit]
Wants=basic.target
After=basic.target
[Service]
Type=oneshot
Environment=HOME=$HOME PATH=$PATH
ExecStart=/bin/sh -c 'bash /script >/printed 2>&1; echo status=\$? >>/printed; systemctl poweroff --force'
END
mountpoint -q /sys/fs/cgroup/systemd || [ -e /sys/fs/cgroup/cgroup.controllers ] || {
	mkdir -p /sys/fs/cgroup/systemd
	mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
}
systemd-nspawn --register=no --keep-unit --private-network --bind-ro=/etc/resolv.conf --overlay="$3:$1/changed:/checkout" \
	--system-call-filter="landlock_create_ruleset landlock_add_rule landlock_restrict_self" \
	-b -D "$1/root" systemd.unit=script.service >"$1/console" 2>&1 </dev/null || true
cat "$1/root/printed" 2>/dev/null || { echo "no boot:"; cat "$1/console"; }`

// onMachine runs a script of bash on a machine of its own that systemd has booted. It skips the test where
// there can be none.
func onMachine(t *testing.T, script string) string {
	t.Helper()
	if os.Geteuid() != 0 || testing.Short() || raceDetector {
		t.Skip("it takes root, and some seconds; what runs there is no build for the race detector")
	}
	need(t, "systemd-nspawn", "unshare", "bash", "dig", "ip")
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "script")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "machine")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "unshare", "-m", "sh", "-c", machine, "sh", root, file, checkout).CombinedOutput()
	if err != nil || strings.HasPrefix(string(out), "no boot:") {
		t.Skipf("no machine can be booted here: %v: %.2000s", err, out)
	}
	return string(out)
}

// operations are the blocks of commands of README's part on operation, in order.
func operations(t *testing.T) (blocks []string) {
	t.Helper()
	_, part, _ := strings.Cut(readme(t), "\n## Operate it\n")
	part, _, _ = strings.Cut(part, "\n## ")
	for _, block := range regexp.MustCompile(`(?m)(?:^    .*\n)+`).FindAllString(part, -1) {
		blocks = append(blocks, regexp.MustCompile(`(?m)^    `).ReplaceAllString(block, ""))
	}
	if len(blocks) != 5 || !strings.HasPrefix(blocks[0], "cmd/bonsai/dist/package.sh") || !strings.HasPrefix(blocks[1], "CGO_ENABLED=0 go build") {
		t.Fatalf("the part has other blocks: %q", blocks)
	}
	return blocks
}

// What a client of the LAN, one of another network, and this machine then find; and a restart by systemd.
const afterwards = `
echo "== a LAN"
ip link add lan0 type veth peer name lan1
ip netns add client
ip link set lan1 netns client
ip address add 192.168.0.1/16 dev lan0
ip address add 10.9.9.1/24 dev lan0
ip link set lan0 up
ip -n client address add 192.168.7.7/16 dev lan1
ip -n client address add 10.9.9.9/24 dev lan1
ip -n client link set lan1 up
ip netns exec client dig @192.168.0.1 localhost A +noall +comments +answer | sed 's/^/client: /'
ip netns exec client dig -b 10.9.9.9 @10.9.9.1 localhost A +noall +comments | sed 's/^/stranger: /'
ip netns exec client dig @192.168.0.1 www.ads.example A +noall +comments | sed 's/^/blocked: /'
echo "== the process"
grep -E "^(Uid|CapEff|CapBnd|Seccomp|NoNewPrivs):" /proc/$(systemctl show --property MainPID --value bonsai)/status
systemd-analyze security --no-pager bonsai | tail -n 1
systemctl stop bonsai
journalctl -u bonsai --no-pager
`

// From nothing to a resolver for a LAN by README's own commands, each on a machine with systemd: by the
// package, and by hand.
func TestOperations(t *testing.T) {
	blocks := operations(t)
	begin := "cd /checkout\nset -ex\nsudo() { \"$@\"; }\nip link set lo up\n"
	for _, by := range []string{"package", "hand"} {
		t.Run("by "+by, func(t *testing.T) {
			install := blocks[1]
			if by == "package" {
				need(t, "nfpm", "dpkg")
				install = blocks[0]
			}
			out := onMachine(t, begin+install+strings.Join(blocks[2:], "")+"set +x\n"+afterwards)
			for _, want := range []string{
				`Active: active \(running\)`,
				`msg="locked in" user="as started, UID \d+" capabilities=none landlock="(on|off: the kernel)[^"]*" reads="/proc /etc/bonsai( /etc/\S+)*" writes="\S* /run/bonsai" seccomp=on`,
				`msg=ready listen="\[0\.0\.0\.0:53 \[::\]:53\]`,
				`(?m)^/etc/bonsai/bonsai.yaml: ok$`,
				`msg=reloaded changed="block-lists or allow-lists"`,
				`(?m)^ready +true$`,
				`client: .*status: NOERROR`, `client: localhost\..*127\.0\.0\.1`,
				`stranger: .*status: REFUSED`,
				`blocked: .*status: NXDOMAIN`,
				`Uid:\t([1-9]\d*)\t`, `CapEff:\t0+\n`, `CapBnd:\t0+400\n`, `Seccomp:\t2`, `NoNewPrivs:\t1`,
				`msg="cache saved" file=/var/lib/bonsai/cache`,
				`(?m)^status=0$`,
			} {
				if !regexp.MustCompile(want).MatchString(out) {
					t.Errorf("no %s", want)
				}
			}
			if strings.Contains(out, "level=ERROR") || t.Failed() {
				t.Errorf("it printed\n%s", out)
			}
			t.Log(regexp.MustCompile(`Overall exposure.*`).FindString(out))
		})
	}
}

// With bonsai.socket systemd has the sockets: the first query starts the service, and while it is restarted
// queries wait.
func TestSocketUnit(t *testing.T) {
	out := onMachine(t, "cd /checkout\nset -e\nsudo() { \"$@\"; }\nip link set lo up\n"+operations(t)[1]+`
install -m 644 cmd/bonsai/dist/bonsai.socket /etc/systemd/system/
systemctl daemon-reload
systemctl start bonsai.socket
echo before: $(systemctl is-active bonsai)
ask() { # until stopped: each query is sent once and waited for for long
	while [ ! -e /stop ]; do
		dig "$@" +short +tries=1 +timeout=20 localhost A
	done
}
touch /udp /udp6 /tcp
ask @127.0.0.1 >/udp 2>&1 &
ask @::1 >/udp6 2>&1 &
ask @127.0.0.1 +tcp >/tcp 2>&1 &
more() { # waits until each has three answers more
	for by in udp udp6 tcp; do
		n=$(wc -l </$by)
		until [ $(wc -l </$by) -ge $((n + 3)) ]; do sleep 0.01; done
	done
}
for i in 1 2 3; do
	more
	systemctl restart bonsai
done
more
echo after: $(systemctl is-active bonsai)
touch /stop
wait
for by in udp udp6 tcp; do
	echo $by: $(grep -c -x 127.0.0.1 /$by) answered, $(grep -v -x 127.0.0.1 /$by | sort | uniq -c)
done
journalctl -u bonsai --no-pager
`)
	for _, want := range []string{`before: inactive\n`, `after: active\n`, `(?m)^udp: \d\d+ answered,$`, `(?m)^udp6: \d\d+ answered,$`, `(?m)^tcp: \d\d+ answered`,
		`msg=ready listen="\[127\.0\.0\.1:53 \[::1\]:53\]"`, `seccomp=on`, `(?m)^status=0$`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %s", want)
		}
	}
	if n := strings.Count(out, "msg=ready"); n != 4 || t.Failed() {
		t.Errorf("%d starts, want 4; it printed\n%s", n, out)
	}
	t.Log(regexp.MustCompile(`(?m)^(?:udp|udp6|tcp): .*`).FindAllString(out, -1))
}

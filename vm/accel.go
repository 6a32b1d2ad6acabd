package vm

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rdmashim/rdmashim/vm/guest"
)

// probeLimit is how long a guest may take to boot with hardware virtualisation
// before it is not used: where it works, a guest is up in two seconds.
const probeLimit = 15 * time.Second

const kvmDevice = "/dev/kvm"

// chooseAccel returns tcg or kvm. /dev/kvm may be there and hang every guest
// (a nested host), so that only a guest that booted shows that it works.
func chooseAccel(ctx context.Context, wish, qemu string, h hardware, logf func(string, ...any)) (string, error) {
	if wish == "tcg" {
		return "tcg", nil
	}
	f, err := os.OpenFile(kvmDevice, os.O_RDWR, 0)
	if err != nil {
		if wish == "kvm" {
			return "", fmt.Errorf("accel kvm: %w", err)
		}
		return "tcg", nil
	}
	f.Close()
	works, err := kvmWorks(ctx, qemu, h, logf)
	if err != nil {
		return "", err
	}
	switch {
	case works:
		return "kvm", nil
	case wish == "kvm":
		return "", fmt.Errorf("accel kvm: no guest boots with %s in %v here", kvmDevice, probeLimit)
	}
	return "tcg", nil
}

// kvmProbe is the result of the probe on this boot of the host.
type kvmProbe struct {
	Boot  string // the host's boot
	Works bool
}

func kvmWorks(ctx context.Context, qemu string, h hardware, logf func(string, ...any)) (bool, error) {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	path, err := CacheDir("accel", sum([]byte(qemu))[:16]+".json")
	if err != nil {
		return false, err
	}
	unlock, err := lockFile(ctx, path+".lock")
	if err != nil {
		return false, err
	}
	defer unlock()
	var p kvmProbe
	if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &p) == nil && p.Boot == strings.TrimSpace(string(boot)) {
		return p.Works, nil
	}
	logf("vm: trying hardware virtualisation, for at most %v", probeLimit)
	p = kvmProbe{Boot: strings.TrimSpace(string(boot)), Works: probeKVM(ctx, qemu, h)}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if !p.Works {
		logf("vm: no guest boots with it here; using software emulation")
	}
	if text, err := json.Marshal(p); err == nil {
		writeFileAtomic(path, text) // without it the next run tries again
	}
	return p.Works, nil
}

// probeKVM boots a guest until its helper speaks.
func probeKVM(ctx context.Context, qemu string, h hardware) bool {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	dir, err := os.MkdirTemp("", "rdmashim-probe-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	file, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return false
	}
	defer file.Close()
	h.accel = "kvm"
	p, err := startQEMU(ctx, qemu, h, nil)
	if err != nil {
		return false
	}
	m := newMachine(0, 0, p, &guestLog{file: file, judge: &logJudge{out: file}})
	defer m.kill()
	return m.boot(ctx, guest.Setup{}) == nil
}

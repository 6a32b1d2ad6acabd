package doctor

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

// bootAnother is the advice where no package is known.
const bootAnother = "boot a kernel that has it (rdmashim vm run does), or use a soft device"

func (e *exam) installHint() string {
	if hint := e.m.InstallHint(); hint != "" {
		return hint
	}
	return bootAnother
}

// config is the kernel's configuration and where it was found.
func (e *exam) config() (text, where string) {
	release := e.sys.Kernel.Release
	for _, path := range []string{"proc/config.gz", "boot/config-" + release, "lib/modules/" + release + "/config", "usr/lib/modules/" + release + "/config"} {
		if e.sys.Kernel.Root == nil {
			return "", ""
		}
		f, err := e.sys.Kernel.Root.Open(path)
		if err != nil {
			continue
		}
		text, err := readConfig(f, strings.HasSuffix(path, ".gz"))
		if err == nil {
			return text, "/" + path
		}
	}
	return "", ""
}

// maxConfig bounds what is read: a configuration has some 300 KiB.
const maxConfig = 8 << 20

func readConfig(f fs.File, packed bool) (string, error) {
	defer f.Close()
	var r io.Reader = f
	if packed {
		z, err := gzip.NewReader(f)
		if err != nil {
			return "", err
		}
		r = z
	}
	b, err := io.ReadAll(io.LimitReader(r, maxConfig))
	return string(b), err
}

// configured says whether an option is y or m.
func configured(text, option string) bool {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), option+"="); ok {
			return v == "y" || v == "m"
		}
	}
	return false
}

// checkKernel looks for what the kernel was built with.
func checkKernel(e *exam) Check {
	text, where := e.config()
	if where == "" {
		return skip("no configuration of kernel %s is to be read (/proc/config.gz, /boot/config-%s); the modules tell", e.sys.Kernel.Release, e.sys.Kernel.Release)
	}
	needs := []string{"CONFIG_INFINIBAND", "CONFIG_INFINIBAND_USER_ACCESS"}
	if e.rxe {
		needs = append(needs, "CONFIG_RDMA_RXE")
	}
	var missing []string
	for _, option := range needs {
		if !configured(text, option) {
			missing = append(missing, option)
		}
	}
	if len(missing) > 0 {
		return fail(e.installHint(), "kernel %s was built without %s (%s)", e.sys.Kernel.Release, strings.Join(missing, ", "), where)
	}
	return pass("kernel %s has %s", e.sys.Kernel.Release, strings.Join(needs, ", "))
}

// checkModules looks for the modules: loaded, to be loaded, or not to be had.
func checkModules(e *exam) Check {
	needs := []string{"ib_uverbs"}
	if e.rxe {
		needs = []string{"rdma_rxe", "ib_uverbs"}
	}
	if e.sys.Kernel.Root == nil {
		return skip("only Linux has them")
	}
	var missing []string
	for _, name := range needs {
		if !e.m.Loaded(name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		if !e.m.Loaded("rdma_ucm") {
			return warn("modprobe rdma_ucm", "%s loaded; rdma_ucm is not: no connections by address (Dial, Listen, librdmacm)", strings.Join(needs, " and "))
		}
		return pass("%s and rdma_ucm are loaded", strings.Join(needs, ", "))
	}
	_, err := e.m.Missing(missing...)
	var none *netlinkmgr.NoModuleError
	switch {
	case errors.As(err, &none):
		fix := none.Install
		if fix == "" {
			fix = bootAnother
		}
		return fail(fix, "kernel %s has no module %s in %s", none.Release, none.Module, none.Dir)
	case err != nil:
		return fail("depmod -a", "the modules cannot be looked up: %v", err)
	}
	detail := fmt.Sprintf("not loaded: %s", strings.Join(missing, ", "))
	if off, _ := e.text("proc/sys/kernel/modules_disabled"); off == "1" {
		return fail("reboot, without kernel.modules_disabled=1", "%s, and kernel.modules_disabled forbids loading", detail)
	}
	if e.rxe {
		return fail("rdmashim link up", "%s", detail)
	}
	return fail("modprobe "+strings.Join(missing, " "), "%s", detail)
}

// checkNetNS looks whether the device is here, and rxe's socket with it.
func checkNetNS(e *exam) Check {
	if e.rdmaErr != nil {
		return e.noDevice()
	}
	system, err := e.m.System(e.ctx)
	if err != nil {
		return skip("%v", err)
	}
	initial, known := e.initialNetNS()
	here := "this network namespace"
	if known && initial {
		here = "the initial network namespace"
	}
	mode := system.NetNS
	switch {
	case e.rdma == nil && mode == netlinkmgr.NetNSExclusive:
		return fail(fmt.Sprintf("run the program in the namespace that has it, or move it from there: rdma dev set %s netns NAMESPACE   (iproute2; NAMESPACE as ip netns names it; links of rdma_rxe stay where they are: use a soft device here)", e.kernel),
			"the mode is exclusive and %s is not in %s: it may be in another", e.kernel, here)
	case e.rdma == nil:
		return e.noDevice()
	case e.below() != "" && e.dev == nil:
		return fail("run the program in the network namespace that has "+e.below()+", or use a soft device here",
			"the mode is %s, so %s is seen here, but its network device %s is in another namespace: it has no usable GID", mode, e.kernel, e.below())
	case e.rxe && known && !initial && len(e.holders()) == 0:
		return fail("use a soft device here: rdmashim doctor "+softOn(e.addr),
			"this is not the initial network namespace, and rdma_rxe of kernel %s has no UDP socket here (from Linux 7.1 it has one in each): nothing arrives", e.sys.Kernel.Release)
	}
	return pass("the mode is %s; %s and %s are in %s", mode, e.kernel, e.netDevName(), here)
}

package doctor

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

// bootAnother is the advice where no package is known.
const bootAnother = "boot a kernel that has it (rdmashim vm run does), or use a soft device"

// checkModules looks for the modules: loaded, to be loaded, or not to be had.
func checkModules(e *exam) Check {
	needs := []string{"ib_uverbs"}
	if e.rxe {
		needs = []string{"rdma_rxe", "ib_uverbs"}
	}
	if e.sys.Kernel.RDMA == nil {
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

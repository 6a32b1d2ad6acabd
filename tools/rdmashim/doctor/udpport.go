package doctor

import (
	"fmt"
	"net/netip"
	"os"

	"github.com/rdmashim/rdmashim/rnic/link/udp/ports"
	"github.com/rdmashim/rdmashim/uapi"
)

// holder is a process that has a UDP socket.
type holder struct {
	local netip.AddrPort
	pid   int // 0: the kernel, or hidden
	name  string
}

func (h holder) String() string { return h.name + " on " + h.local.String() }

// holders returns the processes, other than this one, that have the UDP port on
// the device's address.
func (e *exam) holders() []holder {
	var list []holder
	sockets, _ := ports.Sockets(e.sys.Kernel.Root)
	for _, s := range sockets {
		if s.Local.Port() != e.port || e.kind != host && !s.Takes(netip.AddrPortFrom(e.addr, e.port)) {
			continue
		}
		if h := e.whose(s); h.pid != os.Getpid() {
			list = append(list, h)
		}
	}
	return list
}

// whose returns the process that has a socket.
func (e *exam) whose(s ports.Socket) holder {
	pid, name := s.Process(e.sys.Kernel.Root)
	h := holder{local: s.Local, pid: pid, name: fmt.Sprintf("process %d (%s)", pid, name)}
	if pid == 0 {
		h.name = fmt.Sprintf("a process of user %d (root sees which)", s.UID)
		if s.UID == 0 && s.Local.Addr().IsUnspecified() && e.m.Loaded("rdma_rxe") {
			h.name = "rdma_rxe"
		}
	}
	return h
}

// checkUDPPort looks for the holder of the port.
func checkUDPPort(e *exam) Check {
	if !e.exists("proc/self/net/udp") {
		if e.opened != nil && e.kind == soft {
			return pass("%s is this device's", e.info.Address)
		}
		return skip("this system does not tell who has UDP ports")
	}
	all := e.holders()
	if e.kind == host {
		return e.checkKernelPort(all)
	}
	switch {
	case e.opened != nil && e.port != uapi.RoCEPort && !e.asked:
		e.port = uapi.RoCEPort
		all = e.holders()
		e.port = e.info.Address.Port()
		fix, who := "rmmod rdma_rxe, or name an address that is free: soft:ADDRESS", "another soft device"
		if len(all) > 0 {
			fix, who = endHolder(all[0]), all[0].String()
		}
		return warn(fix, "UDP port %d is taken (%s), so the device is at %s: soft devices reach it, cards and rdma_rxe do not", uapi.RoCEPort, who, e.info.Address)
	case e.opened != nil && e.port != uapi.RoCEPort:
		return pass("%s is this device's; cards and rdma_rxe use %d only", e.info.Address, uapi.RoCEPort)
	case e.opened != nil:
		return pass("%s is this device's", e.info.Address)
	case len(all) > 0:
		return fail(endHolder(all[0])+", or take another address or ?port=0", "UDP port %d is held by %s", e.port, all[0])
	}
	return skip("the device does not open, for another reason: see loopback")
}

func endHolder(h holder) string {
	if h.name == "rdma_rxe" {
		return "rmmod rdma_rxe"
	}
	if h.pid == 0 {
		return fmt.Sprintf("end the process that 'ss -ulnp sport = :%d' shows to root", h.local.Port())
	}
	return fmt.Sprintf("kill %d", h.pid)
}

// checkKernelPort is the check for rdma_rxe, whose module has the port in the
// initial network namespace as long as it is loaded.
func (e *exam) checkKernelPort(all []holder) Check {
	if e.rdma != nil && !e.rxe {
		return skip("a card takes its packets without a socket")
	}
	for _, h := range all {
		switch {
		case h.name == "rdma_rxe":
			return pass("rdma_rxe has UDP port %d", e.port)
		case e.rdma == nil || h.local.Addr().IsUnspecified():
			return fail(endHolder(h)+", then load rdma_rxe again: rmmod rdma_rxe; rdmashim link up", "UDP port %d, which rdma_rxe needs, is held by %s", e.port, h)
		}
	}
	if e.rdma == nil {
		return pass("UDP port %d is free for rdma_rxe", e.port)
	}
	return fail("see netns; else load it again: rmmod rdma_rxe; rdmashim link up", "rdma_rxe has no socket on UDP port %d here: nothing arrives", e.port)
}

package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// wantBuffer is the size that a soft device asks for, in bytes
// (rnic/link/udp.DefaultBuffer).
const wantBuffer = 4 << 20

// checkBuffers compares the socket buffers with what a soft device asks for.
func checkBuffers(e *exam) Check {
	if e.sys.Buffers == nil {
		return skip("this system tells no limit")
	}
	if e.option("buffer=") {
		return pass("as the device's name asks")
	}
	recv, send, err := e.sys.Buffers(wantBuffer)
	if err != nil {
		return skip("%v", err)
	}
	if recv < wantBuffer || send < wantBuffer {
		return warn(fmt.Sprintf("sysctl -w net.core.rmem_max=%d net.core.wmem_max=%d   (or mtu=1024, of which a burst of rdma_rxe fits)", wantBuffer, wantBuffer),
			"a socket gets %s to receive and %s to send (net.core.rmem_max, wmem_max): bursts are lost, and the window stays small", size(int64(recv)), size(int64(send)))
	}
	limit, _ := e.text("proc/sys/net/core/rmem_max")
	if n, err := strconv.Atoi(limit); err == nil && n < wantBuffer && e.m.Capable(capNetAdmin) {
		return pass("a socket gets %s, for this process has CAP_NET_ADMIN; others get net.core.rmem_max, %d", size(int64(recv)), n)
	}
	return pass("a socket gets %s to receive and %s to send", size(int64(recv)), size(int64(send)))
}

// option says whether the device's name has an option that begins so.
func (e *exam) option(text string) bool {
	_, options, _ := strings.Cut(e.o.Device, "?")
	return slices.ContainsFunc(strings.Split(options, "&"), func(o string) bool { return strings.HasPrefix(o, text) })
}

// checkOffload looks whether packets can share system calls.
func checkOffload(e *exam) Check {
	if e.sys.Segmentation == nil {
		return skip("only Linux has them for UDP")
	}
	if e.option("gso=off") || e.option("gro=off") {
		return pass("turned off, as the device's name asks")
	}
	switch send, recv, err := e.sys.Segmentation(); {
	case err != nil:
		return skip("%v", err)
	case !send || !recv:
		return warn("boot Linux 5.0 or later", "UDP sockets of kernel %s know no %s: each packet is a system call", e.sys.Kernel.Release, lacking(send, recv))
	}
	// The counters tell of packets that got through, if any did.
	if checkLoopback(e).Status == Pass {
		if count, err := e.opened.Counters(); err == nil {
			if n := count["gso_refused"]; n > 0 {
				return warn("open the device with gso=off", "segmented packets were refused on %s (gso_refused %d)", e.netDevName(), n)
			}
		}
	}
	return e.checkFeatures()
}

func lacking(send, recv bool) string {
	var l []string
	if !send {
		l = append(l, "GSO")
	}
	if !recv {
		l = append(l, "GRO")
	}
	return strings.Join(l, " and ")
}

// checkFeatures looks at the network device's own switches.
func (e *exam) checkFeatures() Check {
	if e.sys.Features == nil || e.dev == nil {
		return pass("UDP sockets know GSO and GRO")
	}
	on, err := e.sys.Features(e.dev.Name)
	if err != nil {
		return pass("UDP sockets know GSO and GRO (the switches of %s cannot be read: %v)", e.dev.Name, err)
	}
	// A veth or lo carries datagrams whole, so there is nothing to put
	// together.
	gso, gro := on["tx-generic-segmentation"], on["rx-gro"] || !e.dev.Physical
	if e.dev.Loopback || gso && gro {
		return pass("UDP sockets know GSO and GRO, and %s is no hindrance", e.dev.Name)
	}
	return warn("ethtool -K "+e.dev.Name+" gso on gro on", "%s is off on %s: each packet goes through the network stack by itself", lacking(gso, gro), e.dev.Name)
}

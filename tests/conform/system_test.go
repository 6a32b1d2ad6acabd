//go:build linux || darwin

package conform

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/rnic"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/rnic/link/udp"
)

// system is a kernel under test: how to open two devices, which may be one.
// Side 0 is a, side 1 is b.
type system struct {
	name string // "rxe" is Linux 6.1's, a later one's has its version: "rxe-6.12"
	// process gives a side a process of its own, as far as the kernel can tell
	// them apart, and its end.
	process func(side int) (kshim.Kernel, func())
	device  [2]string // names in the kernel
	uapi    [2]string // the same for uapi.Open
	// cmSide is the side whose device and process a side uses to connect by
	// address, and cmAddr a side's address.
	cmSide [2]int
	cmAddr func(side int) netip.Addr
	// references is how many hold ib_uverbs, and the driver of a side's device.
	references func(side int) (core, driver int)
	// kill ends a process of a side as a signal does; nil where that would end
	// the test.
	kill func(side int, k kshim.Kernel) error
	// joinIP has side 0's interface join an IP multicast group, where
	// attaching a queue pair does not; nil where it does.
	joinIP func(group netip.Addr) (leave func(), err error)
	// counter is the sum of a counter of the emulators' devices.
	counter func(name string) uint64
	// unload tries to unload the driver, or ib_uverbs.
	unload func(side int, driver bool) error
}

// rxe says whether it is Linux's.
func (s *system) rxe() bool { return strings.HasPrefix(s.name, "rxe") }

// portMTU is the MTU of the devices' ports: rxe's on a netdev of 1500 bytes.
const portMTU = 1024

// networks numbers the in-memory networks.
var networks atomic.Uint64

// emulatorSim is two soft RNICs on an in-memory network.
func emulatorSim(t testing.TB) *system {
	network := sim.NewNetwork(sim.Options{})
	attach := func(side int) (link.Link, error) {
		return network.Attach(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(side + 1)}), 4791))
	}
	device := fmt.Sprintf("sim?net=conform-%d-%d&mtu=%d", os.Getpid(), networks.Add(1), portMTU)
	return emulator(t, "emulator+sim", attach, device)
}

// emulatorUDP is two soft RNICs on sockets.
func emulatorUDP(t testing.TB) *system {
	return emulatorSockets(t, "emulator+udp", "shm=off", func(l link.Link) (link.Link, error) { return l, nil })
}

// emulatorSockets is two soft RNICs on sockets, or on what around puts around
// those. Other tests run beside it, so the ports are any that are free.
func emulatorSockets(t testing.TB, name, option string, around func(link.Link) (link.Link, error)) *system {
	attach := func(int) (link.Link, error) {
		l, err := udp.Listen(netip.MustParseAddrPort("127.0.0.1:0"), udp.Options{})
		if err != nil {
			return nil, err
		}
		return around(l)
	}
	s := emulator(t, name, attach, fmt.Sprintf("soft:127.0.0.1?port=0&mtu=%d&%s", portMTU, option))
	// Addresses name no UDP port, so only a device with the same port is
	// reached: here itself, like rxe.
	s.cmSide = [2]int{0, 0}
	return s
}

func emulator(t testing.TB, name string, attach func(side int) (link.Link, error), uapiDevice string) *system {
	s := &system{name: name, uapi: [2]string{uapiDevice, uapiDevice}, cmSide: [2]int{0, 1}}
	var machines [2]*emu.Machine
	var addrs [2]netip.Addr
	var devices [2]*rnic.Device
	s.counter = func(name string) uint64 { return devices[0].Counters()[name] + devices[1].Counters()[name] }
	s.cmAddr = func(side int) netip.Addr { return addrs[side] }
	for side := range machines {
		l, err := attach(side)
		require.NoError(t, err)
		addrs[side] = l.Caps().Local.Addr()
		s.device[side] = fmt.Sprintf("soft%d", side)
		near, _ := l.(link.Near)
		device, err := rnic.New(rnic.Config{Name: s.device[side], Link: l, Near: near, MTU: portMTU})
		if err != nil {
			l.Close()
		}
		require.NoError(t, err)
		devices[side] = device
		machines[side] = emu.New()
		require.NoError(t, machines[side].Install(emu.Module{
			Name: "soft", Needs: []string{"ib_uverbs"}, Init: func(this *emu.Driver) error { return this.Register(device) },
		}))
		require.NoError(t, machines[side].Insmod("soft"))
		t.Cleanup(func() { require.NoError(t, machines[side].Rmmod("soft")) })
	}
	s.references = func(side int) (core, driver int) {
		for _, m := range machines[side].Lsmod() {
			switch m.Name {
			case "soft":
				driver = m.Refs
			case "ib_uverbs":
				core = m.Refs
			}
		}
		return core, driver
	}
	s.kill = func(side int, k kshim.Kernel) error { return machines[side].Kill(k.(*emu.Process)) }
	s.unload = func(side int, driver bool) error {
		if driver {
			return machines[side].Rmmod("soft")
		}
		return machines[side].Rmmod("ib_uverbs")
	}
	s.process = func(side int) (kshim.Kernel, func()) {
		p := machines[side].Process("conform")
		return p, p.Exit
	}
	return s
}

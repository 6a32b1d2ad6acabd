package netlinkmgr_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
)

// The kernel's RDMA devices. A program reaches the machine's kernel by
// netlinkmgr.Open; here a kernel of functions answers, as in a test.
func ExampleManager_Devices() {
	kernel := netlinktest.New()
	kernel.LoadRXE()
	kernel.AddLink("rxe0", "eth0", true)
	m := kernel.Manager()

	devices, err := m.Devices(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range devices {
		ports, err := m.Ports(context.Background(), d)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.Name, "on", ports[0].NetDev, *ports[0].State)
	}
	// Output: rxe0 on eth0 ACTIVE
}

// From a bare machine to an RDMA device: Ensure chooses a network device, loads
// the modules, makes the link and waits until it can be used.
func ExampleManager_Ensure() {
	kernel := netlinktest.New() // or m, err := netlinkmgr.Open(), as root
	m := kernel.Manager()

	ready, err := m.Ensure(context.Background(), netlinkmgr.EnsureOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ready.Device, "on", ready.NetDev)
	// Output: rxe0 on eth0
}

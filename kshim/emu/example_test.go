package emu_test

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver/simple"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/kshim/verbs"
)

// A Machine is a kernel with devices; a Process is what a program is on Linux:
// it opens device files, and loses them when it is killed.
func ExampleMachine() {
	m := emu.New()
	must(0, m.Modprobe("ib_uverbs"))
	must(0, m.Register(simple.New("nop0", func(*ring.SendWR) abi.WCStatus { return abi.WCSuccess })))

	p := m.Process("victim")
	fmt.Println(must(p.ReadDir("/sys/class/infiniband")))
	ctx := must(verbs.Open(p, "nop0"))
	pd := must(ctx.AllocPD())
	must(pd.RegMR(make([]byte, 4096), abi.AccessLocalWrite))
	for _, d := range p.Devices() {
		fmt.Println(d.Name(), len(p.Objects(d, "mr")), "region")
	}

	must(0, m.Kill(p))
	_, err := ctx.AllocPD()
	fmt.Println(err)
	fmt.Println(len(m.Process("other").Devices()), "device stays")
	// Output:
	// [nop0]
	// nop0 1 region
	// verbs: allocate PD on nop0: ioctl uverbs0: the process was killed: no such process
	// 1 device stays
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

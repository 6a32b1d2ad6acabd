package simple_test

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver/simple"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/minikernel"
)

// copier is an RDMA device without a network, as the design that this project
// began with had it: a WRITE is a memmove between two regions of the machine,
// done when the doorbell rings.
type copier struct{ *simple.Device }

// write is the device's one operation.
func (d *copier) write(wr *ring.SendWR) abi.WCStatus {
	if wr.Opcode != abi.WRRDMAWrite || len(wr.SGE) != 1 {
		return abi.WCLocQPOpErr
	}
	from := d.Local(wr.SGE[0])
	if from == nil {
		return abi.WCLocProtErr
	}
	to := d.Remote(wr.RKey, wr.RemoteAddr, uint64(len(from)), abi.AccessRemoteWrite)
	if to == nil {
		return abi.WCRemAccessErr
	}
	copy(to, from) // memmove
	return abi.WCSuccess
}

// A driver module of one's own is installed in the process's mini kernel,
// loaded, and used as any device: by the client that speaks to Linux, too.
func Example() {
	device := new(copier)
	device.Device = simple.New("copy0", device.write)
	kernel := minikernel.Machine()
	must(0, kernel.Install(emu.Module{
		Name: "copier", Needs: []string{"ib_uverbs"},
		Init: func(this *emu.Driver) error { return this.Register(device) },
	}))
	must(0, kernel.Insmod("copier"))

	d := must(uapi.Open("copy0", uapi.OpenConfig{}))
	src, dst := []byte("Test message"), make([]byte, 12)
	from := must(d.RegMR(src, uapi.AccessLocalWrite))
	to := must(d.QueryMR(must(d.RegMR(dst, uapi.AccessLocalWrite|uapi.AccessRemoteWrite))))
	qp := must(d.CreateQP(8, 8))
	must(0, d.ConnectQP(qp, must(d.LocalEndpoint(qp))))
	for _, rkey := range []uint32{to.RKey, 12345} {
		must(d.PostWrite(qp, from, 0, to.Addr, rkey, uint64(len(src))))
		var wc [1]uapi.WC
		must(d.PollCQ(qp, wc[:]))
		fmt.Printf("%s %q\n", wc[0].Status.Name(), dst)
	}
	fmt.Println(kernel.Rmmod("copier"))
	must(0, d.Close())
	must(0, kernel.Rmmod("copier"))
	// Output:
	// SUCCESS "Test message"
	// REM_ACCESS_ERR "Test message"
	// rmmod copier: 1 open files need the module; close them first: device or resource busy
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

package uapi_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
)

// connected opens two devices and connects a queue pair on each. Programs on
// two machines do the same with ConnectOver and a TCP connection.
func connected(device string) (a, b *uapi.Device, qa, qb uapi.QP) {
	a, b = openBoth(device)
	qa, err := a.CreateQP(64, 64)
	check(err)
	qb, err = b.CreateQP(64, 64)
	check(err)
	ea, err := a.LocalEndpoint(qa)
	check(err)
	eb, err := b.LocalEndpoint(qb)
	check(err)
	check(errors.Join(a.ConnectQP(qa, eb), b.ConnectQP(qb, ea)))
	return a, b, qa, qb
}

func openBoth(device string) (a, b *uapi.Device) {
	a, err := uapi.Open(device, uapi.OpenConfig{})
	check(err)
	b, err = uapi.Open(device, uapi.OpenConfig{})
	check(err)
	return a, b
}

// check ends an example whose calls do not succeed.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// RDMA WRITE: bytes appear in the peer's memory, and the peer's program does
// nothing for it.
func Example_write() {
	a, b, qa, _ := connected("sim?net=write")
	defer a.Close()
	defer b.Close()

	// The peer opens a region and tells its address and key.
	target := make([]byte, 64)
	_, remote, err := b.RegRegion(target, uapi.MRConfig{Access: uapi.AccessLocalWrite | uapi.AccessRemoteWrite})
	check(err)

	source := []byte("Hello RDMA!")
	mr, err := a.RegMR(source, uapi.AccessLocalWrite)
	check(err)
	id, err := a.Write(qa, uapi.SGE{MR: mr, Length: uint64(len(source))}, remote)
	check(err)
	var wc [10]uapi.WC
	n := 0
	for n == 0 { // spin; WaitCQ sleeps instead
		n, err = a.PollCQ(qa, wc[:])
		check(err)
	}
	fmt.Println(wc[0].WRID == id, wc[0].Status.Name(), wc[0].ByteLen)
	fmt.Printf("%s\n", target[:11])
	// Output:
	// true SUCCESS 11
	// Hello RDMA!
}

// Two queue pairs meet: each side needs the other one's endpoint, which
// travels as text here.
func Example_pair() {
	a, err := uapi.Open("sim:10.0.0.1?net=pair", uapi.OpenConfig{})
	check(err)
	defer a.Close()
	b, err := uapi.Open("sim:10.0.0.2?net=pair", uapi.OpenConfig{})
	check(err)
	defer b.Close()
	qa, err := a.CreateQP(16, 16)
	check(err)
	qb, err := b.CreateQP(16, 16)
	check(err)

	mine, err := a.LocalEndpoint(qa)
	check(err)
	text := mine.String() // rc1,10.0.0.1:4791,qpn=…,psn=…,mtu=4096,rd=16
	theirs, err := b.LocalEndpoint(qb)
	check(err)

	parsed, err := uapi.ParseEndpoint(text)
	check(err)
	fmt.Println(b.ConnectQP(qb, parsed), a.ConnectQP(qa, theirs))
	info, err := b.QueryQP(qb)
	check(err)
	fmt.Println(info.State, info.Remote.Addr, info.MTU)
	// Output:
	// <nil> <nil>
	// RTS 10.0.0.1:4791 4096
}

// A receiver that sleeps until a message comes.
func ExampleDevice_WaitCQ() {
	a, b, qa, qb := connected("sim?net=wait")
	defer a.Close()
	defer b.Close()
	inbox, outbox := make([]byte, 1024), []byte("wake up")
	in, err := b.RegMR(inbox, uapi.AccessLocalWrite)
	check(err)
	out, err := a.RegMR(outbox, 0)
	check(err)
	_, err = b.PostRecv(qb, in, 0, 1024)
	check(err)

	var receiver sync.WaitGroup
	receiver.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var wc [1]uapi.WC
		_, err := b.WaitCQ(ctx, qb, wc[:])
		check(err)
		fmt.Printf("%s, immediate %d\n", inbox[:wc[0].ByteLen], wc[0].Imm)
	})
	_, err = a.PostSendImm(qa, out, 7, 42)
	check(err)
	receiver.Wait()
	// Output:
	// wake up, immediate 42
}

// Devices misbehave on purpose, and the data arrives intact all the same.
func Example_faults() {
	a, b, qa, _ := connected("sim?net=faults&loss=10%&corrupt=1%&seed=7")
	defer a.Close()
	defer b.Close()
	source, target := make([]byte, 1<<20), make([]byte, 1<<20)
	for i := range source {
		source[i] = byte(i >> 8)
	}
	mr, err := a.RegMR(source, uapi.AccessLocalWrite)
	check(err)
	_, remote, err := b.RegRegion(target, uapi.MRConfig{Access: uapi.AccessLocalWrite | uapi.AccessRemoteWrite})
	check(err)
	id, err := a.Write(qa, uapi.SGE{MR: mr, Length: 1 << 20}, remote)
	check(err)
	wc, err := a.WaitWR(context.Background(), qa, id)
	check(err)
	counters, err := a.Counters()
	check(err)
	fmt.Println(wc.Status.Name(), string(source) == string(target))
	fmt.Println(counters["fault_loss"] > 0, counters["retransmitted_pkts"] > 0)
	// Output:
	// SUCCESS true
	// true true
}

// A key that the peer never gave out.
func Example_badRKey() {
	a, b, qa, _ := connected("sim?net=rkey")
	defer a.Close()
	defer b.Close()
	mr, err := a.RegMR([]byte("Test message"), uapi.AccessLocalWrite)
	check(err)
	guess := uapi.Region{Addr: 0x80000000, Length: 12, RKey: 12345}
	id, err := a.Write(qa, uapi.SGE{MR: mr, Length: 12}, guess)
	check(err)
	wc, err := a.WaitWR(context.Background(), qa, id)
	fmt.Println(wc.Status)
	fmt.Println(uapi.StatusOf(err) == uapi.WCRemAccessErr)

	// A mistake on this side is an error of the call instead.
	_, err = a.Write(qa, uapi.SGE{MR: mr, Length: 13}, guess)
	fmt.Println(errors.Is(err, syscall.EINVAL))
	// Output:
	// REM_ACCESS_ERR (remote access error: the peer refused the remote key, address range or permission)
	// true
	// true
}

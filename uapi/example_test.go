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
func connected(deviceA, deviceB string) (a, b *uapi.Device, qa, qb uapi.QP) {
	var err error
	if a, err = uapi.Open(deviceA, uapi.OpenConfig{}); err != nil {
		log.Fatal(err)
	}
	if b, err = uapi.Open(deviceB, uapi.OpenConfig{}); err != nil {
		log.Fatal(err)
	}
	if qa, err = a.CreateQP(64, 64); err != nil {
		log.Fatal(err)
	}
	if qb, err = b.CreateQP(64, 64); err != nil {
		log.Fatal(err)
	}
	ea, err := a.LocalEndpoint(qa)
	if err != nil {
		log.Fatal(err)
	}
	eb, err := b.LocalEndpoint(qb)
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(a.ConnectQP(qa, eb), b.ConnectQP(qb, ea)); err != nil {
		log.Fatal(err)
	}
	return a, b, qa, qb
}

// RDMA WRITE: bytes appear in the peer's memory, and the peer's program does
// nothing for it.
func Example_write() {
	a, b, qa, _ := connected("sim?net=write", "sim?net=write")
	defer a.Close()
	defer b.Close()

	// The peer opens a region and tells its address and key.
	target := make([]byte, 64)
	_, remote, err := b.RegRegion(target, uapi.MRConfig{Access: uapi.AccessLocalWrite | uapi.AccessRemoteWrite})
	if err != nil {
		log.Fatal(err)
	}

	source := []byte("Hello RDMA!")
	mr, err := a.RegMR(source, uapi.AccessLocalWrite)
	if err != nil {
		log.Fatal(err)
	}
	id, err := a.Write(qa, uapi.SGE{MR: mr, Length: uint64(len(source))}, remote)
	if err != nil {
		log.Fatal(err)
	}
	var wc [10]uapi.WC
	n := 0
	for n == 0 { // spin; WaitCQ sleeps instead
		if n, err = a.PollCQ(qa, wc[:]); err != nil {
			log.Fatal(err)
		}
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
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	b, err := uapi.Open("sim:10.0.0.2?net=pair", uapi.OpenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	qa, err := a.CreateQP(16, 16)
	if err != nil {
		log.Fatal(err)
	}
	qb, err := b.CreateQP(16, 16)
	if err != nil {
		log.Fatal(err)
	}

	mine, err := a.LocalEndpoint(qa)
	if err != nil {
		log.Fatal(err)
	}
	text := mine.String() // rc1,10.0.0.1:4791,qpn=…,psn=…,mtu=4096,rd=16
	theirs, err := b.LocalEndpoint(qb)
	if err != nil {
		log.Fatal(err)
	}

	parsed, err := uapi.ParseEndpoint(text)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(b.ConnectQP(qb, parsed), a.ConnectQP(qa, theirs))
	info, err := b.QueryQP(qb)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.State, info.Remote.Addr, info.MTU)
	// Output:
	// <nil> <nil>
	// RTS 10.0.0.1:4791 4096
}

// A receiver that sleeps until a message comes.
func ExampleDevice_WaitCQ() {
	a, b, qa, qb := connected("sim?net=wait", "sim?net=wait")
	defer a.Close()
	defer b.Close()
	inbox, outbox := make([]byte, 1024), []byte("wake up")
	in, err := b.RegMR(inbox, uapi.AccessLocalWrite)
	if err != nil {
		log.Fatal(err)
	}
	out, err := a.RegMR(outbox, 0)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := b.PostRecv(qb, in, 0, 1024); err != nil {
		log.Fatal(err)
	}

	var receiver sync.WaitGroup
	receiver.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var wc [1]uapi.WC
		if _, err := b.WaitCQ(ctx, qb, wc[:]); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s, immediate %d\n", inbox[:wc[0].ByteLen], wc[0].Imm)
	})
	if _, err := a.PostSendImm(qa, out, 7, 42); err != nil {
		log.Fatal(err)
	}
	receiver.Wait()
	// Output:
	// wake up, immediate 42
}

// A device misbehaves on purpose, and the data arrives intact all the same.
func Example_faults() {
	a, b, qa, _ := connected("sim?net=faults&loss=10%&corrupt=1%&seed=7", "sim?net=faults")
	defer a.Close()
	defer b.Close()
	source, target := make([]byte, 1<<20), make([]byte, 1<<20)
	for i := range source {
		source[i] = byte(i >> 8)
	}
	mr, err := a.RegMR(source, uapi.AccessLocalWrite)
	if err != nil {
		log.Fatal(err)
	}
	_, remote, err := b.RegRegion(target, uapi.MRConfig{Access: uapi.AccessLocalWrite | uapi.AccessRemoteWrite})
	if err != nil {
		log.Fatal(err)
	}
	id, err := a.Write(qa, uapi.SGE{MR: mr, Length: 1 << 20}, remote)
	if err != nil {
		log.Fatal(err)
	}
	wc, err := a.WaitWR(context.Background(), qa, id)
	if err != nil {
		log.Fatal(err)
	}
	counters, err := a.Counters()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(wc.Status.Name(), string(source) == string(target))
	fmt.Println(counters["fault_loss"] > 0, counters["retransmitted_pkts"] > 0)
	// Output:
	// SUCCESS true
	// true true
}

// A key that the peer never gave out.
func Example_badRKey() {
	a, b, qa, _ := connected("sim?net=rkey", "sim?net=rkey")
	defer a.Close()
	defer b.Close()
	mr, err := a.RegMR([]byte("Test message"), uapi.AccessLocalWrite)
	if err != nil {
		log.Fatal(err)
	}
	guess := uapi.Region{Addr: 0x80000000, Length: 12, RKey: 12345}
	id, err := a.Write(qa, uapi.SGE{MR: mr, Length: 12}, guess)
	if err != nil {
		log.Fatal(err)
	}
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

package uapi_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/rdmashim/rdmashim/uapi"
)

// A device tells when a shared receive queue runs low.
func ExampleDevice_Events() {
	device, err := uapi.Open("sim", uapi.OpenConfig{})
	check(err)
	defer device.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	events := device.Events(ctx)

	// An event is to come when fewer than two receives are left.
	srq, err := device.CreateSRQ(uapi.SRQConfig{Depth: 16, Limit: 2})
	check(err)
	buf := make([]byte, 16)
	mr, err := device.RegMR(buf, uapi.AccessLocalWrite)
	check(err)
	for range 2 {
		_, err = device.PostSRQRecv(srq, mr, 8, 8)
		check(err)
	}

	// A queue pair that sends to itself takes one of them.
	qp, err := device.CreateQPWith(uapi.QPConfig{SRQ: srq, SendDepth: 1})
	check(err)
	itself, err := device.LocalEndpoint(qp)
	check(err)
	check(device.ConnectQP(qp, itself))
	_, err = device.PostSend(qp, mr, 8)
	check(err)

	e := <-events
	fmt.Println(e.Type, e.SRQ == srq)
	// Output: SRQ_LIMIT_REACHED true
}

// A datagram to a group comes to each queue pair that is in it.
func ExampleDevice_AttachMulticast() {
	const key = 0x11111111
	group := netip.MustParseAddr("239.1.2.3")
	type member struct {
		*uapi.Device
		qp    uapi.QP
		inbox []byte
	}
	var members []member
	for range 3 {
		device, err := uapi.Open("sim?net=group", uapi.OpenConfig{})
		check(err)
		defer device.Close()
		qp, err := device.CreateQPWith(uapi.QPConfig{Type: uapi.TypeUD, QKey: key, SendDepth: 1, RecvDepth: 1})
		check(err)
		check(device.AttachMulticast(qp, group))
		inbox := make([]byte, uapi.GRHLen+16)
		mr, err := device.RegMR(inbox, uapi.AccessLocalWrite)
		check(err)
		_, err = device.PostRecv(qp, mr, 0, uint64(len(inbox)))
		check(err)
		members = append(members, member{device, qp, inbox})
	}

	// One of them sends, and receives it, too.
	one := members[0]
	here, err := one.LocalEndpoint(one.qp)
	check(err)
	ah, err := one.CreateAH(netip.AddrPortFrom(group, here.Addr.Port()), uapi.AHConfig{})
	check(err)
	out, err := one.RegMR([]byte("hello, all"), 0)
	check(err)
	_, err = one.PostSendTo(one.qp, ah, uapi.MulticastQPN, key, out, 0, 10)
	check(err)

	for _, m := range members {
		wc := uapi.WC{Opcode: uapi.WCOpSend}
		for wc.Opcode == uapi.WCOpSend { // the sender's own completion
			var next [1]uapi.WC
			_, err := m.WaitCQ(context.Background(), m.qp, next[:])
			check(err)
			wc = next[0]
		}
		fmt.Printf("%s\n", m.inbox[uapi.GRHLen:wc.ByteLen])
	}
	// Output:
	// hello, all
	// hello, all
	// hello, all
}

package rdmacm_test

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/kshim/verbs"
)

// openQP opens a device and makes a queue pair on it; see kshim/verbs.
func openQP(k kshim.Kernel, device string) (*verbs.QP, error) {
	dev, err := verbs.Open(k, device)
	if err != nil {
		return nil, err
	}
	pd, err := dev.AllocPD()
	if err != nil {
		return nil, err
	}
	cq, err := dev.CreateCQ(64)
	if err != nil {
		return nil, err
	}
	return pd.CreateQP(verbs.QPInit{SendCQ: cq, RecvCQ: cq, MaxSendWR: 32, MaxRecvWR: 32})
}

// A client connects to a server, which answers with private data.
func Example_active() {
	call := func(k kshim.Kernel, server netip.AddrPort) error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		ch, err := rdmacm.Open(k)
		if err != nil {
			return err
		}
		defer ch.Close()
		id, err := ch.Resolve(ctx, netip.AddrPort{}, server, rdmacm.Options{})
		if err != nil {
			return err
		}
		defer id.Destroy()
		device, err := id.Device()
		if err != nil {
			return err
		}
		qp, err := openQP(k, device)
		if err != nil {
			return err
		}
		peer, err := id.Connect(ctx, qp, rdmacm.ConnParam{Private: []byte("hello"), ResponderResources: 1, InitiatorDepth: 1, RetryCount: 7, RNRRetryCount: 7})
		if err != nil {
			return err
		}
		fmt.Printf("connected; the server says %q\n", peer.Private[:12])
		return id.Disconnect()
	}
	_ = call
}

// A server accepts one connection and waits for its end.
func Example_passive() {
	serve := func(ctx context.Context, k kshim.Kernel) error {
		ch, err := rdmacm.Open(k)
		if err != nil {
			return err
		}
		defer ch.Close()
		l, err := ch.Listen(netip.MustParseAddrPort("0.0.0.0:7471"), 0, rdmacm.Options{})
		if err != nil {
			return err
		}
		defer l.Close()
		req, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		defer req.Destroy()
		device, err := req.Device()
		if err != nil {
			return err
		}
		qp, err := openQP(k, device)
		if err != nil {
			return err
		}
		if err := req.Init(qp); err != nil {
			return err
		}
		// Receives are posted here: the client may send as soon as it has our
		// answer.
		if err := req.Accept(ctx, qp, rdmacm.ConnParam{Private: []byte("address, key"), ResponderResources: 1, InitiatorDepth: 1}); err != nil {
			return err
		}
		<-req.Context().Done()
		fmt.Println("the end:", context.Cause(req.Context()))
		return nil
	}
	_ = serve
}

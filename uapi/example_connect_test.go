package uapi_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"

	"github.com/rdmashim/rdmashim/uapi"
)

// A server gives each client memory to write to and tells it where, in the
// acceptance. The client writes there and goes, which the server is told.
func ExampleDevice_Dial() {
	ctx := context.Background()
	server, client := openBoth("sim?net=dial")
	defer server.Close()
	defer client.Close()
	l, err := server.Listen(":7471", uapi.ListenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	served := make(chan string)
	go func() { served <- serveOne(ctx, l) }()

	qp, err := client.Dial(ctx, at(server, l), uapi.DialConfig{Private: []byte("hello")})
	if err != nil {
		log.Fatal(err)
	}
	conn, err := client.QueryConn(qp)
	if err != nil {
		log.Fatal(err)
	}
	var there uapi.Region // the server's region
	if err := there.UnmarshalBinary(conn.PrivateData[:uapi.RegionSize]); err != nil {
		log.Fatal(err)
	}
	text := []byte("written by address and port")
	mr, err := client.RegMR(text, uapi.AccessLocalWrite)
	if err != nil {
		log.Fatal(err)
	}
	id, err := client.Write(qp, uapi.SGE{MR: mr, Length: uint64(len(text))}, there)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.WaitWR(ctx, qp, id); err != nil {
		log.Fatal(err)
	}
	if err := client.Disconnect(qp); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-served)
	// Output:
	// asked with "hello"
	// the peer disconnected: true
	// written by address and port
}

// serveOne accepts a client and waits until it has gone.
func serveOne(ctx context.Context, l *uapi.Listener) string {
	r, err := l.Accept(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("asked with %q\n", r.PrivateData[:5])
	d, page := r.Device, make([]byte, 64)
	pd, err := d.CreatePD() // of this client: no other reaches its page
	if err != nil {
		log.Fatal(err)
	}
	_, here, err := d.RegRegion(page, uapi.MRConfig{Access: uapi.AccessLocalWrite | uapi.AccessRemoteWrite, PD: pd})
	if err != nil {
		log.Fatal(err)
	}
	qp, err := r.CreateQPWith(uapi.QPConfig{PD: pd})
	if err != nil {
		log.Fatal(err)
	}
	private, err := here.MarshalBinary()
	if err != nil {
		log.Fatal(err)
	}
	if _, err := r.Accept(ctx, private); err != nil {
		log.Fatal(err)
	}
	<-d.Done(qp)
	cause, err := d.Cause(qp)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the peer disconnected:", errors.Is(cause, uapi.ErrPeerDisconnected))
	return string(page[:27])
}

// A request can be looked at and refused, with a word.
func ExampleRequest_Reject() {
	ctx := context.Background()
	server, client := openBoth("sim?net=reject")
	defer server.Close()
	defer client.Close()
	l, err := server.Listen(":0", uapi.ListenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	go func() {
		if r, err := l.Accept(ctx); err == nil {
			_ = r.Reject(uapi.RejectedByProgram, []byte("full"))
		}
	}()
	_, err = client.Dial(ctx, at(server, l), uapi.DialConfig{})
	var rejected *uapi.RejectError
	if errors.As(err, &rejected) {
		fmt.Printf("%v: %s\n", rejected.Reason, rejected.PrivateData[:4])
	}
	fmt.Println(errors.Is(err, uapi.ErrRefused))
	// Output:
	// CONSUMER_DEFINED: full
	// true
}

func openBoth(device string) (a, b *uapi.Device) {
	a, err := uapi.Open(device, uapi.OpenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	if b, err = uapi.Open(device, uapi.OpenConfig{}); err != nil {
		log.Fatal(err)
	}
	return a, b
}

// at is where a listener is reached.
func at(d *uapi.Device, l *uapi.Listener) string {
	info, err := d.QueryDevice()
	if err != nil {
		log.Fatal(err)
	}
	return netip.AddrPortFrom(info.Address.Addr(), l.Addr().Port()).String()
}

package uapi_test

import (
	"context"
	"errors"
	"fmt"
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
	check(err)
	defer l.Close()
	served := make(chan string)
	go func() { served <- serveOne(ctx, l) }()

	qp, err := client.Dial(ctx, at(server, l), uapi.DialConfig{Private: []byte("hello")})
	check(err)
	conn, err := client.QueryConn(qp)
	check(err)
	var there uapi.Region // the server's region
	check(there.UnmarshalBinary(conn.PrivateData[:uapi.RegionSize]))
	text := []byte("written by address and port")
	mr, err := client.RegMR(text, uapi.AccessLocalWrite)
	check(err)
	id, err := client.Write(qp, uapi.SGE{MR: mr, Length: uint64(len(text))}, there)
	check(err)
	_, err = client.WaitWR(ctx, qp, id)
	check(err)
	check(client.Disconnect(qp))
	fmt.Println(<-served)
	// Output:
	// asked with "hello"
	// the peer disconnected: true
	// written by address and port
}

// serveOne accepts a client and waits until it has gone.
func serveOne(ctx context.Context, l *uapi.Listener) string {
	r, err := l.Accept(ctx)
	check(err)
	fmt.Printf("asked with %q\n", r.PrivateData[:5])
	d, page := r.Device, make([]byte, 64)
	pd, err := d.CreatePD() // of this client: no other reaches its page
	check(err)
	_, here, err := d.RegRegion(page, uapi.MRConfig{Access: uapi.AccessLocalWrite | uapi.AccessRemoteWrite, PD: pd})
	check(err)
	qp, err := r.CreateQPWith(uapi.QPConfig{PD: pd})
	check(err)
	private, err := here.MarshalBinary()
	check(err)
	_, err = r.Accept(ctx, private)
	check(err)
	<-d.Done(qp)
	cause, err := d.Cause(qp)
	check(err)
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
	check(err)
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

// at is where a listener is reached.
func at(d *uapi.Device, l *uapi.Listener) string {
	info, err := d.QueryDevice()
	check(err)
	return netip.AddrPortFrom(info.Address.Addr(), l.Addr().Port()).String()
}

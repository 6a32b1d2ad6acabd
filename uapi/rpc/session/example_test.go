package session_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// A server with one handler for all methods, and a client.
func Example() {
	device, err := uapi.Open("sim", uapi.OpenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer device.Close()
	l, err := device.Listen(":7471", uapi.ListenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	server, err := session.NewServer(session.ServerConfig{
		Unary: func(_ context.Context, r *session.Request) session.Reply {
			return session.Reply{Body: session.Bytes(fmt.Appendf(nil, "%s of %s", r.Method, r.Body))}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- server.Serve(l) }()

	client, err := session.Dial(device, l.Addr().String(), session.ClientConfig{})
	if err != nil {
		log.Fatal(err)
	}
	err = client.Call(context.Background(), &session.Call{
		Method: "greeting",
		Body:   session.Bytes("hello"),
		Reply:  func(a *session.Answer) error { fmt.Printf("%s\n", a.Body); return nil },
	})
	fmt.Println(err)
	client.Close()
	server.Stop()
	fmt.Println(<-served)
	// Output:
	// greeting of hello
	// <nil>
	// <nil>
}

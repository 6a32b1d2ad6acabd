package qmux_test

import (
	"context"
	"fmt"
	"io"
	"net"

	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// A question and its answer on a stream of their own, over any net.Conn.
func Example() {
	x, y := net.Pipe()
	ctx := context.Background()
	go func() {
		server, err := qmux.Server(y, nil)
		if err != nil {
			return
		}
		s, err := server.AcceptStream(ctx)
		if err != nil {
			return
		}
		question, _ := io.ReadAll(s)
		fmt.Fprintf(s, "you said %s", question)
		s.Close()
	}()

	client, err := qmux.Client(x, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := client.OpenStreamSync(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	s.Write([]byte("hello"))
	s.Close()
	answer, err := io.ReadAll(s)
	fmt.Println(string(answer), err)
	client.CloseWithError(42, "thanks")
	// Output:
	// you said hello <nil>
}

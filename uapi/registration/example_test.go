package registration_test

import (
	"context"
	"fmt"
	"io"

	"github.com/rdmashim/rdmashim/uapi/registration"
)

// The same program over two transports, side by side.
func Example() {
	ctx := context.Background()
	for _, transport := range []registration.Transport{
		registration.TCP{Addr: "127.0.0.1"},
		registration.Soft{Addr: loopback()},
	} {
		r, err := registration.Open(ctx, registration.Config{Transport: transport, Insecure: true})
		if err != nil {
			fmt.Println(err)
			return
		}
		l, err := r.Listen(ctx, 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		go func() {
			c, err := l.Accept(ctx)
			if err != nil {
				return
			}
			s, err := c.AcceptStream(ctx)
			if err != nil {
				return
			}
			question, _ := io.ReadAll(s)
			fmt.Fprintf(s, "you said %s over %s", question, c.ConnectionState().Transport)
			s.Close()
		}()

		c, err := r.Dial(ctx, l.Addr().String())
		if err != nil {
			fmt.Println(err)
			return
		}
		s, err := c.OpenStreamSync(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		s.Write([]byte("hello"))
		s.Close()
		answer, err := io.ReadAll(s)
		fmt.Println(string(answer), err)
		r.Close()
	}
	// Output:
	// you said hello over tcp <nil>
	// you said hello over soft <nil>
}

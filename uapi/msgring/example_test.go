package msgring_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
)

// A question and its answer between two devices. The reader finds the message
// in the memory into which the peer wrote it.
func Example() {
	ctx := context.Background()
	device, err := uapi.Open("sim:10.0.0.1?net=msgring-example", uapi.OpenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer device.Close()
	peer, err := uapi.Open("sim:10.0.0.2?net=msgring-example", uapi.OpenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer peer.Close()
	l, err := device.Listen(":7471", uapi.ListenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		request, err := l.Accept(ctx)
		if err != nil {
			return
		}
		c, err := msgring.Accept(ctx, request, msgring.Config{Mode: msgring.Messages})
		if err != nil {
			return
		}
		question, _ := c.Peek() // lent until Discard
		c.Write(fmt.Appendf(nil, "you said %s", question))
		c.Discard(len(question))
		c.CloseContext(ctx)
	}()

	c, err := msgring.Dial(ctx, peer, "10.0.0.1:7471", msgring.Config{Mode: msgring.Messages})
	if err != nil {
		log.Fatal(err)
	}
	c.Write([]byte("hello"))
	answer, err := c.Peek()
	fmt.Println(string(answer), err)
	c.Discard(len(answer))
	c.Close()
	// Output: you said hello <nil>
}

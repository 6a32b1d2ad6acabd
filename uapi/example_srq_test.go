package uapi_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rdmashim/rdmashim/uapi"
)

// A server of two clients has one queue of receives for both.
func ExampleDevice_CreateSRQ() {
	server, client := openBoth("sim?net=srq")
	defer server.Close()
	defer client.Close()
	inbox := make([]byte, 4*16)
	in, err := server.RegMR(inbox, uapi.AccessLocalWrite)
	check(err)
	srq, err := server.CreateSRQ(uapi.SRQConfig{Depth: 4})
	check(err)
	for at := uint64(0); at < 4; at++ { // ids 0 … 3
		_, err = server.PostSRQRecv(srq, in, at*16, 16)
		check(err)
	}
	cq, err := server.CreateCQ(64)
	check(err)
	l, err := server.Listen(":0", uapi.ListenConfig{})
	check(err)
	defer l.Close()
	ctx := context.Background()
	go func() {
		for {
			r, err := l.Accept(ctx)
			if err != nil {
				return
			}
			if _, err = r.CreateQPWith(uapi.QPConfig{SRQ: srq, SendDepth: 1, RecvCQ: cq}); err == nil {
				_, err = r.Accept(ctx, nil)
			}
			if err != nil {
				log.Print(err)
			}
		}
	}()

	for _, text := range []string{"from the one", "from the other"} {
		qp, err := client.Dial(ctx, at(server, l), uapi.DialConfig{})
		check(err)
		out, err := client.RegMR([]byte(text), 0)
		check(err)
		_, err = client.PostSend(qp, out, uint64(len(text)))
		check(err)
		var wc [1]uapi.WC
		_, err = server.WaitQueue(ctx, cq, wc[:])
		check(err)
		at := uint64(wc[0].WRID) * 16
		fmt.Printf("receive %d: %s\n", wc[0].WRID, inbox[at:at+wc[0].ByteLen])
		// Its buffer is free for the next message.
		_, err = server.PostSRQ(srq, []uapi.WR{{
			Op: uapi.OpRecv, ID: wc[0].WRID, SGE: []uapi.SGE{{MR: in, Offset: at, Length: 16}},
		}})
		check(err)
	}
	// Output:
	// receive 0: from the one
	// receive 1: from the other
}

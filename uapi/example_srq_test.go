package uapi_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rdmashim/rdmashim/uapi"
)

// A server of two clients has one queue of receives for both.
func ExampleDevice_CreateSRQ() {
	server, err := uapi.Open("sim?net=srq", uapi.OpenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	inbox := make([]byte, 4*16)
	in, err := server.RegMR(inbox, uapi.AccessLocalWrite)
	if err != nil {
		log.Fatal(err)
	}
	srq, err := server.CreateSRQ(uapi.SRQConfig{Depth: 4})
	if err != nil {
		log.Fatal(err)
	}
	for at := uint64(0); at < 4; at++ { // ids 0 … 3
		if _, err := server.PostSRQRecv(srq, in, at*16, 16); err != nil {
			log.Fatal(err)
		}
	}
	cq, err := server.CreateCQ(64)
	if err != nil {
		log.Fatal(err)
	}
	info, err := server.QueryDevice()
	if err != nil {
		log.Fatal(err)
	}
	l, err := server.Listen(info.Address.Addr().String()+":0", uapi.ListenConfig{})
	if err != nil {
		log.Fatal(err)
	}
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

	client, err := uapi.Open("sim?net=srq", uapi.OpenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for _, text := range []string{"from the one", "from the other"} {
		qp, err := client.Dial(ctx, l.Addr().String(), uapi.DialConfig{})
		if err != nil {
			log.Fatal(err)
		}
		out, err := client.RegMR([]byte(text), 0)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := client.PostSend(qp, out, uint64(len(text))); err != nil {
			log.Fatal(err)
		}
		var wc [1]uapi.WC
		if _, err := server.WaitQueue(ctx, cq, wc[:]); err != nil {
			log.Fatal(err)
		}
		at := uint64(wc[0].WRID) * 16
		fmt.Printf("receive %d: %s\n", wc[0].WRID, inbox[at:at+wc[0].ByteLen])
		// Its buffer is free for the next message.
		if _, err := server.PostSRQ(srq, []uapi.WR{{
			Op: uapi.OpRecv, ID: wc[0].WRID, SGE: []uapi.SGE{{MR: in, Offset: at, Length: 16}},
		}}); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// receive 0: from the one
	// receive 1: from the other
}

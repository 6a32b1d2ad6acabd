package uapi_test

import (
	"context"
	"fmt"
	"net"

	"github.com/rdmashim/rdmashim/uapi"
)

// Two programs that have a connection of their own, such as TCP, exchange
// endpoints and regions over it.
func ExampleDevice_ConnectOver() {
	ctx := context.Background()
	server, client := openBoth("sim?net=over")
	defer server.Close()
	defer client.Close()
	near, far := net.Pipe() // a TCP connection, between two machines

	page := make([]byte, 4096)
	offered := make(chan error)
	go func() { // the server offers a page
		mr, err := server.RegMR(page, uapi.AccessLocalWrite|uapi.AccessRemoteWrite)
		check(err)
		qp, err := server.CreateQP(16, 16)
		check(err)
		_, err = server.ConnectOver(ctx, far, qp, []uapi.MR{mr}, []byte("one page"))
		offered <- err
	}()

	qp, err := client.CreateQP(16, 16)
	check(err)
	peer, err := client.ConnectOver(ctx, near, qp, nil, nil)
	check(err)
	there := peer.Regions[0]
	fmt.Printf("%s: %d bytes, %v\n", peer.Data, there.Length, <-offered)

	text := []byte("over a channel of our own")
	mr, err := client.RegMR(text, uapi.AccessLocalWrite)
	check(err)
	id, err := client.Write(qp, uapi.SGE{MR: mr, Length: uint64(len(text))}, there)
	check(err)
	_, err = client.WaitWR(ctx, qp, id)
	check(err)
	fmt.Printf("%s\n", page[:len(text)])
	// Output:
	// one page: 4096 bytes, <nil>
	// over a channel of our own
}

// A counter in the peer's memory, of eight bytes in the machine's order. An
// atomic adds to it and brings what it was.
func ExampleDevice_FetchAdd() {
	a, b, qa, _ := connected("sim?net=atomic")
	defer a.Close()
	defer b.Close()
	counter := make([]byte, 8)
	_, there, err := b.RegRegion(counter, uapi.MRConfig{Access: uapi.AccessLocalWrite | uapi.AccessRemoteAtomic})
	check(err)
	before := make([]byte, 8)
	mr, err := a.RegMR(before, uapi.AccessLocalWrite)
	check(err)
	for range 3 {
		id, err := a.FetchAdd(qa, uapi.SGE{MR: mr, Length: 8}, there, 5)
		check(err)
		_, err = a.WaitWR(context.Background(), qa, id)
		check(err)
		fmt.Println(before[0])
	}
	// Output:
	// 0
	// 5
	// 10
}

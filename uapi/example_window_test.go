package uapi_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/rdmashim/rdmashim/uapi"
)

// A server lends its buffer for one request: a window opens it to the client,
// whose answer closes it. Before and after, no key reaches it.
func ExampleDevice_CreateMW() {
	server, client, qs, qc := connected("sim?net=window")
	defer server.Close()
	defer client.Close()
	ctx := context.Background()
	wait := func(d *uapi.Device, qp uapi.QP) uapi.WC {
		var wc [1]uapi.WC
		_, err := d.WaitCQ(ctx, qp, wc[:])
		check(err)
		return wc[0]
	}

	// The server has a page without remote access, and a window.
	page, told := make([]byte, 4096), make([]byte, 64)
	mem, err1 := server.RegMR(page, uapi.AccessLocalWrite|uapi.AccessMWBind)
	out, err2 := server.RegMR(told, uapi.AccessLocalWrite)
	mw, err3 := server.CreateMW(qs)
	_, err4 := server.PostRecv(qs, out, 0, 0)
	// The client awaits the loan.
	data := append([]byte("for this"), make([]byte, uapi.RegionSize)...)
	in, err5 := client.RegMR(data, uapi.AccessLocalWrite)
	_, err6 := client.PostRecv(qc, in, 8, uapi.RegionSize)
	check(errors.Join(err1, err2, err3, err4, err5, err6))

	// One post binds the window and tells the client.
	part := uapi.SGE{MR: mem, Offset: 1024, Length: 1024}
	loan, err := server.NextRegion(mw, part, uapi.AccessRemoteWrite)
	check(err)
	_, err = loan.AppendBinary(told[:0])
	check(err)
	_, err = server.Post(qs, []uapi.WR{
		{Op: uapi.OpBindMW, MW: mw, SGE: []uapi.SGE{part}, Access: uapi.AccessRemoteWrite},
		{Op: uapi.OpSend, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: out, Length: uapi.RegionSize}}},
	})
	check(err)
	wait(server, qs)

	// The client writes, and its answer revokes the key.
	wait(client, qc)
	var there uapi.Region
	check(there.UnmarshalBinary(data[8:]))
	_, err = client.Post(qc, []uapi.WR{
		{Op: uapi.OpWrite, SGE: []uapi.SGE{{MR: in, Length: 8}}, RemoteAddr: there.Addr, RKey: there.RKey},
		{Op: uapi.OpSendInv, Flags: uapi.Signaled, RKey: there.RKey},
	})
	check(err)
	fmt.Println("the client's answer:", wait(client, qc).Status.Name())
	answer := wait(server, qs)
	fmt.Printf("the server has %q, and the key is revoked: %t\n", page[1024:1032], answer.Flags == uapi.WCWithInv && answer.InvRKey == loan.RKey)

	_, err = client.PostWrite(qc, in, 0, there.Addr, there.RKey, 8)
	check(err)
	fmt.Println("a second write:", wait(client, qc).Status.Name())
	// Output:
	// the client's answer: SUCCESS
	// the server has "for this", and the key is revoked: true
	// a second write: REM_ACCESS_ERR
}

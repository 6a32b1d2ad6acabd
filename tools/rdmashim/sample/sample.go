package sample

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/rdmashim/echo"
	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/nvme"
	"github.com/rdmashim/rdmashim/uapi"
)

// The two sample programs of the founding documents: a page of the server's,
// whose address and key the server tells in its acceptance, and the client's
// operations on it.
const (
	samplePage    = 4096
	sampleInitial = "server-initial"
	sampleWrote   = "client-wrote-this\x00"
	sampleImm     = "client-wrote-with-imm\x00"
	sampleRecv    = 64  // bytes of the server's receive
	sampleRecvID  = 100 // its work request's id
	samplePlace   = 12  // private data: address and key, big-endian
)

// sample is one of the programs.
type sample struct {
	name string
	port uint16
	what string
	imm  bool
}

var samples = []sample{
	{"write-read", 7471, "The client writes 18 bytes into the server's page by RDMA WRITE and reads the\npage back by RDMA READ; the server's program takes no part in either.", false},
	{"write-imm", 7472, "The client writes 22 bytes into the server's page by RDMA WRITE WITH\nIMMEDIATE, which completes a receive of the server's with the number 22.", true},
}

// Command is 'rdmashim sample'.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sample",
		Short: "Sample programs between two machines",
		Long: `Small programs, each a server and a client, which check every byte. write-read
and write-imm connect by address and port through the RDMA connection manager,
and interoperate with their likes written in C against librdmacm: the server
registers a page and tells its address and key. counter is a service of gRPC.
quic runs QUIC's streams over several transports at once. nvme has disks.`,
		Example: "  rdmashim sample write-read server\n  rdmashim sample write-read client 127.0.0.1",
		Args:    cli.NoArgs,
		RunE:    cli.Help,
	}
	for _, s := range samples {
		c := &cobra.Command{
			Use:     s.name,
			Short:   fmt.Sprintf("The sample program %s, server or client (port %d)", s.name, s.port),
			Long:    s.what,
			Example: fmt.Sprintf("  rdmashim sample %[1]s server\n  rdmashim sample %[1]s client 127.0.0.1", s.name),
			Args:    cli.NoArgs,
			RunE:    cli.Help,
		}
		addRoles(c, s, "sample "+s.name, s.port)
		cmd.AddCommand(c)
	}
	cmd.AddCommand(counterCommand(), echo.SampleCommand(), nvme.Command())
	return cmd
}

var sampleQP = uapi.QPConfig{SendDepth: 32, RecvDepth: 32, MaxRdAtomic: 1}

const sampleAccess = uapi.AccessLocalWrite | uapi.AccessRemoteRead | uapi.AccessRemoteWrite

// accept registers a page and tells the client where it is.
func (s sample) accept(ctx context.Context, c *conn, r *uapi.Request) error {
	page, err := c.Alloc(samplePage, sampleAccess)
	if err != nil {
		return err
	}
	copy(page.Buf, sampleInitial)
	info, err := c.RDMA.QueryMR(page.MR)
	if err != nil {
		return err
	}
	place := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, info.Addr), info.RKey)
	return c.accepted(ctx, r, sampleQP, func() error {
		if !s.imm {
			return nil
		}
		recv, err := c.Alloc(sampleRecv, uapi.AccessLocalWrite)
		if err == nil {
			_, err = c.RDMA.Post(c.QP, []uapi.WR{{ID: sampleRecvID, Op: uapi.OpRecv, SGE: []uapi.SGE{{MR: recv.MR, Length: sampleRecv}}}})
		}
		return err
	}, place)
}

// answer checks the client's work when it has left.
func (s sample) answer(ctx context.Context, c *conn) error {
	page := c.Memory[0].Buf
	want := sampleWrote
	if s.imm {
		want = sampleImm
		wc, err := c.Next(ctx, "receive of the write with immediate")
		if err != nil {
			return c.ended(err)
		}
		if wc.WRID != sampleRecvID || wc.Opcode != uapi.WCOpRecvWriteImm || wc.Flags&uapi.WCWithImm == 0 ||
			wc.Imm != uint32(len(want)) || wc.ByteLen != uint64(len(want)) {
			return fmt.Errorf("the completion is %v of request %d with immediate %d and %d bytes; wanted %v of %d with %d and %d",
				wc.Opcode, wc.WRID, wc.Imm, wc.ByteLen, uapi.WCOpRecvWriteImm, sampleRecvID, len(want), len(want))
		}
		fmt.Fprintf(c.out, "Got RECV with IMM: imm_data=0x%08x (host=%d)\n", binary.LittleEndian.Uint32(binary.BigEndian.AppendUint32(nil, wc.Imm)), wc.Imm)
	}
	if err := c.peerLeaves(ctx); err != nil {
		return err
	}
	full := make([]byte, samplePage)
	copy(full, sampleInitial)
	copy(full, want)
	if !bytes.Equal(page, full) {
		return fmt.Errorf("the page holds %q after the client has left, not %q", text(page), text(full))
	}
	fmt.Fprintf(c.out, "client %v: verified, buf='%s'\n", c.info.RemoteAddr, text(page))
	return nil
}

// text returns the bytes before the first zero, bounded.
func text(b []byte) []byte {
	b, _, _ = bytes.Cut(b, []byte{0})
	return b[:min(len(b), 160)]
}

// dial connects.
func (s sample) dial(ctx context.Context, c *conn, addr string) error {
	return c.connected(ctx, addr, uapi.DialConfig{QPConfig: sampleQP})
}

// ask writes into the server's page, and reads it back.
func (s sample) ask(ctx context.Context, c *conn) error {
	mem, err := c.Alloc(samplePage, uapi.AccessLocalWrite)
	if err != nil {
		return err
	}
	buf, mr := mem.Buf, mem.MR
	// The kernel tells no length: a server that says nothing says zeroes.
	private := c.info.PrivateData
	if len(private) < samplePlace || bytes.Equal(private[:samplePlace], make([]byte, samplePlace)) {
		return fmt.Errorf("the server's acceptance does not carry the %d bytes that say where its page is", samplePlace)
	}
	there := uapi.Region{Addr: binary.BigEndian.Uint64(private), Length: samplePage, RKey: binary.BigEndian.Uint32(private[8:])}
	fmt.Fprintf(c.out, "connected to %v: addr=%#x rkey=%#x\n", c.info.RemoteAddr, there.Addr, there.RKey)
	if s.imm {
		n := copy(buf, sampleImm)
		if _, err := c.RDMA.WriteImm(c.QP, uapi.SGE{MR: mr, Length: uint64(n)}, there, uint32(n)); err != nil {
			return err
		}
		if _, err := c.Next(ctx, "WRITE_WITH_IMM"); err != nil {
			return c.ended(err)
		}
		fmt.Fprintln(c.out, "WRITE_WITH_IMM completed")
		return nil
	}
	n := copy(buf, sampleWrote)
	if _, err := c.RDMA.Write(c.QP, uapi.SGE{MR: mr, Length: uint64(n)}, there); err != nil {
		return err
	}
	if _, err := c.Next(ctx, "WRITE"); err != nil {
		return c.ended(err)
	}
	fmt.Fprintln(c.out, "WRITE complete")
	clear(buf)
	if _, err := c.RDMA.Read(c.QP, uapi.SGE{MR: mr, Length: samplePage}, there); err != nil {
		return err
	}
	if _, err := c.Next(ctx, "READ"); err != nil {
		return c.ended(err)
	}
	want := make([]byte, samplePage)
	copy(want, sampleWrote)
	if !bytes.Equal(buf, want) {
		return fmt.Errorf("READ brought %q, not %q", text(buf), text(want))
	}
	fmt.Fprintf(c.out, "READ complete: '%s'\n", text(buf))
	return nil
}

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/uapi"
)

// The two sample programs of the founding documents: a page of the server's, whose address and key
// the server tells in its acceptance, and what the client does with it.
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
	{"write-read", 7471, "The client writes 18 bytes into the server's page by RDMA WRITE and reads the page back by\nRDMA READ; the server's program takes no part in either.", false},
	{"write-imm", 7472, "The client writes 22 bytes into the server's page by RDMA WRITE WITH IMMEDIATE, which\ncompletes a receive of the server's with the number 22.", true},
}

func newSample() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sample",
		Short: "The sample programs write-read and write-imm, between two machines",
		Long: `Two small programs that connect by address and port through the RDMA connection manager,
and interoperate with their likes written in C against librdmacm: each is a server, which
registers a page and tells its address and key, and a client. Both check every byte.`,
		Example: `  rdmashim sample write-read server
  rdmashim sample write-read client 127.0.0.1`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, s := range samples {
		cmd.AddCommand(s.command())
	}
	return cmd
}

func (s sample) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     s.name,
		Short:   fmt.Sprintf("The sample program %s, server or client (port %d)", s.name, s.port),
		Long:    s.what,
		Example: fmt.Sprintf("  rdmashim sample %s server\n  rdmashim sample %s client 127.0.0.1", s.name, s.name),
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var server, client cmOptions
	serve := &cobra.Command{
		Use:     "server",
		Short:   "Serve clients until ended; prints 'listening ADDR:PORT'",
		Example: fmt.Sprintf("  rdmashim sample %s server --once", s.name),
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serveCM(cmd.Context(), &server, sampleServer{s}, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	server.addServer(serve, s.port)
	call := &cobra.Command{
		Use:     "client HOST[:PORT]",
		Short:   "Write into the memory of a server",
		Example: fmt.Sprintf("  rdmashim sample %s client 192.0.2.7", s.name),
		Args:    oneHost,
		RunE: func(cmd *cobra.Command, args []string) error {
			return cmClient(cmd.Context(), &client, args[0], "sample "+s.name, cmd.OutOrStdout(), cmd.ErrOrStderr(), s.dial, s.call)
		},
	}
	client.addClient(call, s.port)
	cmd.AddCommand(serve, call)
	return cmd
}

// oneHost wants the server's HOST.
func oneHost(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("%s needs the server's HOST", cmd.CommandPath())
	}
	return maxArgs(1)(cmd, args)
}

func sampleQP() uapi.QPConfig { return uapi.QPConfig{SendDepth: 32, RecvDepth: 32, MaxRdAtomic: 1} }

// sampleServer is a sample's server.
type sampleServer struct{ sample }

const sampleAccess = uapi.AccessLocalWrite | uapi.AccessRemoteRead | uapi.AccessRemoteWrite

// accept registers a page and tells the client where it is.
func (s sampleServer) accept(ctx context.Context, c *cmConn, r *uapi.Request) error {
	page, mr, err := c.alloc(samplePage, sampleAccess)
	if err != nil {
		return err
	}
	copy(page, sampleInitial)
	info, err := c.rdma.QueryMR(mr)
	if err != nil {
		return err
	}
	place := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, info.Addr), info.RKey)
	return c.accepted(ctx, r, sampleQP(), func() error {
		if !s.imm {
			return nil
		}
		_, recv, err := c.alloc(sampleRecv, uapi.AccessLocalWrite)
		if err == nil {
			_, err = c.rdma.Post(c.qp, []uapi.WR{{ID: sampleRecvID, Op: uapi.OpRecv, SGE: []uapi.SGE{{MR: recv, Length: sampleRecv}}}})
		}
		return err
	}, place)
}

// talk checks what the client has done when it has left.
func (s sampleServer) talk(ctx context.Context, c *cmConn) error {
	page := c.memory[0].buf
	want := sampleWrote
	if s.imm {
		want = sampleImm
		wc, err := c.next(ctx, "receive of the write with immediate")
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

// text is what lies before the first zero, bounded.
func text(b []byte) []byte {
	b, _, _ = bytes.Cut(b, []byte{0})
	return b[:min(len(b), 64)]
}

// dial connects and takes memory for what is written and read.
func (s sample) dial(ctx context.Context, c *cmConn, addr string) error {
	return c.connected(ctx, addr, uapi.DialConfig{QPConfig: sampleQP()})
}

// call writes into the server's page, and reads it back.
func (s sample) call(ctx context.Context, c *cmConn) error {
	buf, mr, err := c.alloc(samplePage, uapi.AccessLocalWrite)
	if err != nil {
		return err
	}
	// The kernel tells no length: a server that says nothing says zeroes.
	private := c.info.PrivateData
	if len(private) < samplePlace || bytes.Equal(private[:samplePlace], make([]byte, samplePlace)) {
		return fmt.Errorf("the server's acceptance does not carry the %d bytes that say where its page is", samplePlace)
	}
	at, key := binary.BigEndian.Uint64(private), binary.BigEndian.Uint32(private[8:])
	fmt.Fprintf(c.out, "connected to %v: addr=%#x rkey=%#x\n", c.info.RemoteAddr, at, key)
	if s.imm {
		n := uint64(copy(buf, sampleImm))
		if _, err := c.rdma.PostWriteImm(c.qp, mr, 0, at, key, n, uint32(n)); err != nil {
			return err
		}
		if _, err := c.next(ctx, "WRITE_WITH_IMM"); err != nil {
			return c.ended(err)
		}
		fmt.Fprintln(c.out, "WRITE_WITH_IMM completed")
		return nil
	}
	n := uint64(copy(buf, sampleWrote))
	if _, err := c.rdma.PostWrite(c.qp, mr, 0, at, key, n); err != nil {
		return err
	}
	if _, err := c.next(ctx, "WRITE"); err != nil {
		return c.ended(err)
	}
	fmt.Fprintln(c.out, "WRITE complete")
	clear(buf)
	if _, err := c.rdma.PostRead(c.qp, mr, 0, at, key, samplePage); err != nil {
		return err
	}
	if _, err := c.next(ctx, "READ"); err != nil {
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

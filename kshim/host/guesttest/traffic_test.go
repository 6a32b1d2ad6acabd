//go:build guest && linux

package guesttest

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
)

// TestOperations: every operation, with both ways of ringing.
func TestOperations(t *testing.T) {
	for _, name := range []string{device, "host:" + device + "?doorbell=raw"} {
		t.Run(name, func(t *testing.T) {
			const size = 1 << 20
			p := connect(t, name, size+8)
			info, err := p.a.QueryDevice()
			require.NoError(t, err)
			require.Contains(t, []string{name, "host:" + name}, info.Device)
			chacha := rand.NewChaCha8([32]byte{1})
			for _, n := range []int{0, 1, 1023, 1024, 1025, 65537, size} {
				chacha.Read(p.bufA[:n])
				p.write(t, n)
				require.True(t, bytes.Equal(p.bufA[:n], p.bufB[:n]), "write of %d", n)

				chacha.Read(p.bufB[:n])
				_, err := p.a.PostRead(p.qa, p.ma, 0, p.at.Addr, p.at.RKey, uint64(n))
				require.NoError(t, err)
				wait(t, p.a, p.qa)
				require.True(t, bytes.Equal(p.bufA[:n], p.bufB[:n]), "read of %d", n)

				chacha.Read(p.bufA[:n])
				_, err = p.b.PostRecv(p.qb, p.mb, 0, size)
				require.NoError(t, err)
				_, err = p.a.PostSendImm(p.qa, p.ma, uint64(n), 0x12345678)
				require.NoError(t, err)
				wait(t, p.a, p.qa)
				wc := wait(t, p.b, p.qb)
				require.Equal(t, uint64(n), uint64(wc.ByteLen))
				require.Equal(t, uint32(0x12345678), wc.Imm)
				require.True(t, bytes.Equal(p.bufA[:n], p.bufB[:n]), "send of %d", n)
			}
			_, err = p.b.PostRecv(p.qb, p.mb, 0, 0)
			require.NoError(t, err)
			_, err = p.a.PostWriteImm(p.qa, p.ma, 0, p.at.Addr, p.at.RKey, 100, 7)
			require.NoError(t, err)
			wait(t, p.a, p.qa)
			require.Equal(t, uint32(7), wait(t, p.b, p.qb).Imm)

			word := p.bufB[size:]
			binary.NativeEndian.PutUint64(word, 40)
			_, err = p.a.PostFetchAdd(p.qa, p.ma, size, p.at.Addr+size, p.at.RKey, 2)
			require.NoError(t, err)
			wait(t, p.a, p.qa)
			require.Equal(t, uint64(40), binary.NativeEndian.Uint64(p.bufA[size:]))
			_, err = p.a.PostCompareSwap(p.qa, p.ma, size, p.at.Addr+size, p.at.RKey, 42, 1000)
			require.NoError(t, err)
			wait(t, p.a, p.qa)
			require.Equal(t, uint64(1000), binary.NativeEndian.Uint64(word))
		})
	}
}

// TestErrors: a bad key is the peer's word, and both queue pairs flush the
// rest, also receives that were posted when the kernel no longer looked.
func TestErrors(t *testing.T) {
	p := connect(t, device, 4096)
	for range 3 {
		_, err := p.b.PostRecv(p.qb, p.mb, 0, 100)
		require.NoError(t, err)
	}
	_, err := p.a.PostWrite(p.qa, p.ma, 0, p.at.Addr, p.at.RKey+1, 64)
	require.NoError(t, err)
	_, err = p.a.PostWrite(p.qa, p.ma, 0, p.at.Addr, p.at.RKey, 64)
	require.NoError(t, err)
	require.Equal(t, []uapi.Status{uapi.WCRemAccessErr, uapi.WCWRFlushErr}, statuses(t, p.a, p.qa, 2))
	require.Equal(t, []uapi.Status{uapi.WCWRFlushErr, uapi.WCWRFlushErr, uapi.WCWRFlushErr}, statuses(t, p.b, p.qb, 3))
	for range 2 {
		_, err := p.b.PostRecv(p.qb, p.mb, 0, 100)
		require.NoError(t, err)
	}
	require.Equal(t, []uapi.Status{uapi.WCWRFlushErr, uapi.WCWRFlushErr}, statuses(t, p.b, p.qb, 2))
}

func statuses(t *testing.T, c *uapi.Context, qp uapi.QP, n int) (list []uapi.Status) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	wc := make([]uapi.WC, n)
	for len(list) < n {
		got, err := c.WaitCQ(ctx, qp, wc)
		require.NoError(t, err)
		for _, w := range wc[:got] {
			list = append(list, w.Status)
		}
	}
	return list
}

// TestPostingAllocatesNothing: also where a post is a system call.
func TestPostingAllocatesNothing(t *testing.T) {
	for _, name := range []string{device, device + "?doorbell=raw"} {
		p := connect(t, name, 64)
		wr := []uapi.WR{{Op: uapi.OpWrite, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: p.ma, Length: 8}}, RemoteAddr: p.at.Addr, RKey: p.at.RKey}}
		wc := make([]uapi.WC, 4)
		var failed error
		round := func() {
			if _, err := p.a.Post(p.qa, wr); err != nil {
				failed = err
			}
			for n := 0; n == 0 && failed == nil; {
				n, failed = p.a.PollCQ(p.qa, wc)
				if n > 0 && wc[0].Err() != nil {
					failed = wc[0].Err()
				}
			}
		}
		round()
		require.Zero(t, testing.AllocsPerRun(200, round), name)
		require.NoError(t, failed)
	}
}

// TestOneUDPPort: the kernel's device cannot reach a soft device elsewhere than
// at the port that RoCE has.
func TestOneUDPPort(t *testing.T) {
	p := connect(t, device, 64)
	qp, err := p.a.CreateQP(1, 1)
	require.NoError(t, err)
	require.ErrorIs(t, p.a.ConnectQP(qp, uapi.Endpoint{
		Addr: mustEndpoint(t, p.b, p.qb, 5000), QPN: 17, MTU: 1024, MaxRdAtomic: 1,
	}), syscall.EADDRNOTAVAIL)
}

package emu

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// raw is a command as bytes: 4-byte words in the kernel's layout, as measured
// on Linux 6.1, without the help of package abi.
func (c *client) raw(words ...uint32) []byte {
	c.t.Helper()
	var b []byte
	for _, w := range words {
		b = le.AppendUint32(b, w)
	}
	n, err := c.f.Write(b)
	require.NoError(c.t, err, "command %d", words[0])
	require.Equal(c.t, len(b), n)
	return c.page
}

// TestRecordedLayouts brings a queue pair up with commands written out by hand:
// the numbers and offsets are those of a client that was run on Linux rxe.
func TestRecordedLayouts(t *testing.T) {
	c := newClient(t, false)
	lo, hi := uint32(c.addr), uint32(c.addr>>32)
	hdr := func(in, out uint32) uint32 { return in | out<<16 } // in_words, out_words

	r := c.raw(0, hdr(4, 2), lo, hi) // GET_CONTEXT
	require.Equal(t, uint32(4), le.Uint32(r[0:]), "async_fd")
	require.Equal(t, uint32(1), le.Uint32(r[4:]), "num_comp_vectors")

	r = c.raw(2, hdr(6, 10), lo, hi, 1, 0) // QUERY_PORT
	require.Equal(t, []byte{4, 3, 2}, []byte{r[26], r[28], r[37]}, "state, active_mtu, link_layer")

	r = c.raw(3, hdr(4, 1), lo, hi) // ALLOC_PD
	pd := le.Uint32(r)

	r = c.raw(9, hdr(12, 3), lo, hi, lo, hi, 4096, 0, lo, hi, pd, 7) // REG_MR
	mr, lkey, rkey := le.Uint32(r), le.Uint32(r[4:]), le.Uint32(r[8:])
	require.Equal(t, []uint32{0x2c4, 0x2c4}, []uint32{lkey, rkey})

	r = c.raw(17, hdr(4, 1), lo, hi) // CREATE_COMP_CHANNEL
	fd := le.Uint32(r)
	require.Equal(t, uint32(5), fd)

	r = c.raw(18, hdr(10, 6), lo, hi, 0x11, 0x22, 63, 0, fd, 0) // CREATE_CQ
	cq := le.Uint32(r)
	require.Equal(t, uint32(63), le.Uint32(r[4:]), "cqe")
	require.Equal(t, uint32(len(c.dev.LastCQ.Queue.Mapping())), le.Uint32(r[16:]), "mi.size")
	ring, err := c.f.Mmap(le.Uint64(r[8:]), int(le.Uint32(r[16:])))
	require.NoError(t, err)
	require.Same(t, &c.dev.LastCQ.Queue.Mapping()[0], &ring[0])
	c.raw(23, hdr(4, 0), cq, 0) // REQ_NOTIFY_CQ
	c.dev.LastCQ.Events.Completion()

	r = c.raw(24, hdr(16, 16), lo, hi, 0x33, 0x44, pd, cq, cq, 0, 8, 4, 2, 1, 0, 0x0201) // CREATE_QP: sig_all, RC
	qp := le.Uint32(r)
	require.Equal(t, []uint32{17, 8, 4, 2, 1, 32}, []uint32{le.Uint32(r[4:]), le.Uint32(r[8:]), le.Uint32(r[12:]),
		le.Uint32(r[16:]), le.Uint32(r[20:]), le.Uint32(r[24:])}, "qpn, depths, entries, inline")
	require.Equal(t, []int{len(c.dev.Last.RQ.Mapping()), len(c.dev.Last.SQ.Mapping())}, []int{int(le.Uint32(r[40:])), int(le.Uint32(r[56:]))}, "the receive queue's mmap info comes first")
	require.True(t, c.dev.Last.Init.SigAll)
	sq, err := c.f.Mmap(le.Uint64(r[48:]), int(le.Uint32(r[56:])))
	require.NoError(t, err)
	require.Same(t, &c.dev.Last.SQ.Mapping()[0], &sq[0])

	var m [30]uint32 // header, then struct ib_uverbs_modify_qp, 112 bytes
	m[0], m[1] = 26, hdr(30, 0)
	at := func(offset int) *uint32 { return &m[2+offset/4] }
	modify := func() { t.Helper(); c.raw(m[:]...) }
	*at(64), *at(68) = qp, 0x39
	*at(88) = 0xe // access
	*at(96) = 1   // state INIT; cur_state, path_mtu, path_mig
	*at(104) = 1  // port; timeout, retry, rnr_retry
	modify()
	require.Equal(t, "INIT", c.dev.Last.State().String())
	*at(68) = 0x129181
	*at(8), *at(12) = 0xffff0000, 0x0200000a // dgid ::ffff:10.0.0.2
	*at(24) = 64 << 8                        // sgid_index 0, hop_limit
	*at(28) = 1<<16 | 1<<24                  // is_global, port_num
	*at(76), *at(84) = 0x111111, 0x222222    // rq_psn, dest_qp_num
	*at(96) = 2 | 3<<16                      // RTR, path_mtu 1024
	*at(100) = 1<<16 | 12<<24                // max_dest_rd_atomic @102, min_rnr @103
	modify()
	require.Equal(t, [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: 2}, c.dev.Last.Modified.Dest.DGID)
	*at(68) = 0x12e01
	*at(80) = 0x333333               // sq_psn
	*at(96) = 3                      // RTS
	*at(100) = 1 << 8                // max_rd_atomic @101
	*at(104) = 14<<8 | 7<<16 | 6<<24 // timeout @105, retry @106, rnr_retry @107
	modify()
	a := c.dev.Last.Modified
	require.Equal(t, []uint32{0x333333, 14, 7, 6, 1}, []uint32{a.SQPSN, uint32(a.Timeout), uint32(a.RetryCnt), uint32(a.RNRRetry), uint32(a.MaxRdAtomic)})

	c.raw(28, hdr(8, 1), lo, hi, qp, 0, 0, 56) // POST_SEND, the doorbell: 32 bytes
	require.Equal(t, int64(1), c.dev.Doorbells.Load())

	r = c.raw(25, hdr(6, 32), lo, hi, qp, 0) // QUERY_QP
	require.Equal(t, byte(3), r[108], "qp_state")

	ch, err := c.proc.Adopt(int32(fd))
	require.NoError(t, err)
	var ev [8]byte
	_, err = ch.Read(t.Context(), ev[:])
	require.NoError(t, err)
	require.Equal(t, [8]byte{0: 0x11, 4: 0x22}, ev)

	r = c.raw(27, hdr(6, 1), lo, hi, qp, 0) // DESTROY_QP
	require.Zero(t, le.Uint32(r))
	r = c.raw(20, hdr(6, 2), lo, hi, cq, 0) // DESTROY_CQ
	require.Equal(t, []uint32{1, 0}, []uint32{le.Uint32(r), le.Uint32(r[4:])})
	c.raw(13, hdr(3, 0), mr) // DEREG_MR
	c.raw(4, hdr(3, 0), pd)  // DEALLOC_PD
	require.Empty(t, c.dev.Live)
}

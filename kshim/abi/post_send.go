package abi

// PostSend is struct ib_uverbs_post_send. With WRCount and SGECount 0 it is the doorbell of rxe:
// the work requests lie in the send queue's ring; WQESize must still be at least SendWRSize.
type PostSend struct {
	Response uint64
	QPHandle uint32
	WRCount  uint32
	SGECount uint32
	WQESize  uint32
}

// PostSendSize is the size of ib_uverbs_post_send in bytes.
const PostSendSize = 24

// Put encodes v into the first PostSendSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *PostSend) Put(b []byte) {
	clear(b[:PostSendSize])
	le.PutUint64(b[0:], v.Response)
	le.PutUint32(b[8:], v.QPHandle)
	le.PutUint32(b[12:], v.WRCount)
	le.PutUint32(b[16:], v.SGECount)
	le.PutUint32(b[20:], v.WQESize)
}

// Parse decodes the first PostSendSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *PostSend) Parse(b []byte) error {
	if len(b) < PostSendSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	v.QPHandle = le.Uint32(b[8:])
	v.WRCount = le.Uint32(b[12:])
	v.SGECount = le.Uint32(b[16:])
	v.WQESize = le.Uint32(b[20:])
	return nil
}

// PostSendResp is struct ib_uverbs_post_send_resp.
type PostSendResp struct {
	BadWR uint32
}

// PostSendRespSize is the size of ib_uverbs_post_send_resp in bytes.
const PostSendRespSize = 4

// Put encodes v into the first PostSendRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *PostSendResp) Put(b []byte) {
	clear(b[:PostSendRespSize])
	le.PutUint32(b[0:], v.BadWR)
}

// Parse decodes the first PostSendRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *PostSendResp) Parse(b []byte) error {
	if len(b) < PostSendRespSize {
		return ErrShort
	}
	v.BadWR = le.Uint32(b[0:])
	return nil
}

// SendWRSize is the size of struct ib_uverbs_send_wr, the least WQESize that POST_SEND takes.
const SendWRSize = 56

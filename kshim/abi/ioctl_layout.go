package abi

// IoctlHdr is struct ib_uverbs_ioctl_hdr, the head of an RDMA_VERBS_IOCTL request.
// NumAttrs attributes of IoctlAttrSize bytes follow.
type IoctlHdr struct {
	Length    uint16 // bytes, header and attributes
	ObjectID  ObjectID
	MethodID  MethodID
	NumAttrs  uint16
	Reserved1 uint64
	DriverID  DriverID
	Reserved2 uint32
}

// IoctlHdrSize is the size of ib_uverbs_ioctl_hdr in bytes.
const IoctlHdrSize = 24

// Put encodes v into the first IoctlHdrSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *IoctlHdr) Put(b []byte) {
	clear(b[:IoctlHdrSize])
	le.PutUint16(b[0:], v.Length)
	le.PutUint16(b[2:], uint16(v.ObjectID))
	le.PutUint16(b[4:], uint16(v.MethodID))
	le.PutUint16(b[6:], v.NumAttrs)
	le.PutUint64(b[8:], v.Reserved1)
	le.PutUint32(b[16:], uint32(v.DriverID))
	le.PutUint32(b[20:], v.Reserved2)
}

// Parse decodes the first IoctlHdrSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *IoctlHdr) Parse(b []byte) error {
	if len(b) < IoctlHdrSize {
		return ErrShort
	}
	v.Length = le.Uint16(b[0:])
	v.ObjectID = ObjectID(le.Uint16(b[2:]))
	v.MethodID = MethodID(le.Uint16(b[4:]))
	v.NumAttrs = le.Uint16(b[6:])
	v.Reserved1 = le.Uint64(b[8:])
	v.DriverID = DriverID(le.Uint32(b[16:]))
	v.Reserved2 = le.Uint32(b[20:])
	return nil
}

// IoctlAttr is struct ib_uverbs_attr. Input of at most 8 bytes stands in Data itself; longer input, and
// output of any length, at the address in Data.
type IoctlAttr struct {
	AttrID   AttrID
	Len      uint16
	Flags    uint16
	AttrData uint16 // elem_id of an enumeration attribute, else 0
	Data     uint64 // value, address, object handle or (sign-extended) file descriptor
}

// IoctlAttrSize is the size of ib_uverbs_attr in bytes.
const IoctlAttrSize = 16

// Put encodes v into the first IoctlAttrSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *IoctlAttr) Put(b []byte) {
	clear(b[:IoctlAttrSize])
	le.PutUint16(b[0:], uint16(v.AttrID))
	le.PutUint16(b[2:], v.Len)
	le.PutUint16(b[4:], v.Flags)
	le.PutUint16(b[6:], v.AttrData)
	le.PutUint64(b[8:], v.Data)
}

// Parse decodes the first IoctlAttrSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *IoctlAttr) Parse(b []byte) error {
	if len(b) < IoctlAttrSize {
		return ErrShort
	}
	v.AttrID = AttrID(le.Uint16(b[0:]))
	v.Len = le.Uint16(b[2:])
	v.Flags = le.Uint16(b[4:])
	v.AttrData = le.Uint16(b[6:])
	v.Data = le.Uint64(b[8:])
	return nil
}

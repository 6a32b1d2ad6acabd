package abi

import "encoding/binary"

// UCMBind is struct rdma_ucm_bind.
type UCMBind struct {
	ID       uint32
	AddrSize uint16
	Addr     SockaddrStorage
}

// UCMBindSize is the size of rdma_ucm_bind in bytes.
const UCMBindSize = 136

// Put encodes v into the first UCMBindSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMBind) Put(b []byte) {
	clear(b[:UCMBindSize])
	le.PutUint32(b[0:], v.ID)
	le.PutUint16(b[4:], v.AddrSize)
	copy(b[8:136], v.Addr[:])
}

// Parse decodes the first UCMBindSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMBind) Parse(b []byte) error {
	if len(b) < UCMBindSize {
		return ErrShort
	}
	v.ID = le.Uint32(b[0:])
	v.AddrSize = le.Uint16(b[4:])
	copy(v.Addr[:], b[8:136])
	return nil
}

// UCMResolveAddr is struct rdma_ucm_resolve_addr. SrcSize 0 leaves the source to the route.
type UCMResolveAddr struct {
	ID        uint32
	TimeoutMS uint32
	SrcSize   uint16
	DstSize   uint16
	Reserved  uint32 // must be 0
	SrcAddr   SockaddrStorage
	DstAddr   SockaddrStorage
}

// UCMResolveAddrSize is the size of rdma_ucm_resolve_addr in bytes.
const UCMResolveAddrSize = 272

// Put encodes v into the first UCMResolveAddrSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMResolveAddr) Put(b []byte) {
	clear(b[:UCMResolveAddrSize])
	le.PutUint32(b[0:], v.ID)
	le.PutUint32(b[4:], v.TimeoutMS)
	le.PutUint16(b[8:], v.SrcSize)
	le.PutUint16(b[10:], v.DstSize)
	le.PutUint32(b[12:], v.Reserved)
	copy(b[16:144], v.SrcAddr[:])
	copy(b[144:272], v.DstAddr[:])
}

// Parse decodes the first UCMResolveAddrSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMResolveAddr) Parse(b []byte) error {
	if len(b) < UCMResolveAddrSize {
		return ErrShort
	}
	v.ID = le.Uint32(b[0:])
	v.TimeoutMS = le.Uint32(b[4:])
	v.SrcSize = le.Uint16(b[8:])
	v.DstSize = le.Uint16(b[10:])
	v.Reserved = le.Uint32(b[12:])
	copy(v.SrcAddr[:], b[16:144])
	copy(v.DstAddr[:], b[144:272])
	return nil
}

// UCMResolveRoute is struct rdma_ucm_resolve_route.
type UCMResolveRoute struct {
	ID        uint32
	TimeoutMS uint32
}

// UCMResolveRouteSize is the size of rdma_ucm_resolve_route in bytes.
const UCMResolveRouteSize = 8

// Put encodes v into the first UCMResolveRouteSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMResolveRoute) Put(b []byte) {
	clear(b[:UCMResolveRouteSize])
	le.PutUint32(b[0:], v.ID)
	le.PutUint32(b[4:], v.TimeoutMS)
}

// Parse decodes the first UCMResolveRouteSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMResolveRoute) Parse(b []byte) error {
	if len(b) < UCMResolveRouteSize {
		return ErrShort
	}
	v.ID = le.Uint32(b[0:])
	v.TimeoutMS = le.Uint32(b[4:])
	return nil
}

// UCMQuery is struct rdma_ucm_query, a question that Option names.
type UCMQuery struct {
	Response uint64
	ID       uint32
	Option   UCMQueryOption
}

// UCMQuerySize is the size of rdma_ucm_query in bytes.
const UCMQuerySize = 16

// Put encodes v into the first UCMQuerySize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMQuery) Put(b []byte) {
	clear(b[:UCMQuerySize])
	le.PutUint64(b[0:], v.Response)
	le.PutUint32(b[8:], v.ID)
	le.PutUint32(b[12:], uint32(v.Option))
}

// Parse decodes the first UCMQuerySize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMQuery) Parse(b []byte) error {
	if len(b) < UCMQuerySize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	v.ID = le.Uint32(b[8:])
	v.Option = UCMQueryOption(le.Uint32(b[12:]))
	return nil
}

// UCMQueryAddrResp is struct rdma_ucm_query_addr_resp, the answer to UCMQueryAddr and UCMQueryGID.
type UCMQueryAddrResp struct {
	NodeGUID   uint64 // of the device, 0 while there is none
	PortNum    uint8
	Pkey       uint16
	SrcSize    uint16
	DstSize    uint16
	SrcAddr    SockaddrStorage
	DstAddr    SockaddrStorage
	IBDevIndex uint32 // the device's number in RDMA netlink; not given before Linux 5.8
}

// UCMQueryAddrRespSize is the size of rdma_ucm_query_addr_resp in bytes.
const UCMQueryAddrRespSize = 280

// Put encodes v into the first UCMQueryAddrRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMQueryAddrResp) Put(b []byte) {
	clear(b[:UCMQueryAddrRespSize])
	binary.BigEndian.PutUint64(b[0:], v.NodeGUID)
	b[8] = v.PortNum
	le.PutUint16(b[10:], v.Pkey)
	le.PutUint16(b[12:], v.SrcSize)
	le.PutUint16(b[14:], v.DstSize)
	copy(b[16:144], v.SrcAddr[:])
	copy(b[144:272], v.DstAddr[:])
	le.PutUint32(b[272:], v.IBDevIndex)
}

// Parse decodes the first UCMQueryAddrRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMQueryAddrResp) Parse(b []byte) error {
	if len(b) < UCMQueryAddrRespSize {
		return ErrShort
	}
	v.NodeGUID = binary.BigEndian.Uint64(b[0:])
	v.PortNum = b[8]
	v.Pkey = le.Uint16(b[10:])
	v.SrcSize = le.Uint16(b[12:])
	v.DstSize = le.Uint16(b[14:])
	copy(v.SrcAddr[:], b[16:144])
	copy(v.DstAddr[:], b[144:272])
	v.IBDevIndex = le.Uint32(b[272:])
	return nil
}

// UCMQueryPathResp is struct rdma_ucm_query_path_resp, which heads the answer to UCMQueryPath; NumPaths
// times UCMPathRecSize bytes follow it.
type UCMQueryPathResp struct {
	NumPaths uint32
}

// UCMQueryPathRespSize is the size of rdma_ucm_query_path_resp in bytes.
const UCMQueryPathRespSize = 8

// Put encodes v into the first UCMQueryPathRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMQueryPathResp) Put(b []byte) {
	clear(b[:UCMQueryPathRespSize])
	le.PutUint32(b[0:], v.NumPaths)
}

// Parse decodes the first UCMQueryPathRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMQueryPathResp) Parse(b []byte) error {
	if len(b) < UCMQueryPathRespSize {
		return ErrShort
	}
	v.NumPaths = le.Uint32(b[0:])
	return nil
}

// UCMPathRec is struct ib_path_rec_data: a path record as on the wire (IBA 15.2.5.16).
type UCMPathRec struct {
	Flags   uint32
	PathRec [64]byte
}

// UCMPathRecSize is the size of ib_path_rec_data in bytes.
const UCMPathRecSize = 72

// Put encodes v into the first UCMPathRecSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMPathRec) Put(b []byte) {
	clear(b[:UCMPathRecSize])
	le.PutUint32(b[0:], v.Flags)
	copy(b[8:72], v.PathRec[:])
}

// Parse decodes the first UCMPathRecSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMPathRec) Parse(b []byte) error {
	if len(b) < UCMPathRecSize {
		return ErrShort
	}
	v.Flags = le.Uint32(b[0:])
	copy(v.PathRec[:], b[8:72])
	return nil
}

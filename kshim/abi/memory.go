package abi

// AllocPD is struct ib_uverbs_alloc_pd.
type AllocPD struct {
	Response uint64
}

// AllocPDSize is the size of ib_uverbs_alloc_pd in bytes.
const AllocPDSize = 8

// Put encodes v into the first AllocPDSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *AllocPD) Put(b []byte) {
	clear(b[:AllocPDSize])
	le.PutUint64(b[0:], v.Response)
}

// Parse decodes the first AllocPDSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *AllocPD) Parse(b []byte) error {
	if len(b) < AllocPDSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	return nil
}

// AllocPDResp is struct ib_uverbs_alloc_pd_resp.
type AllocPDResp struct {
	PDHandle uint32
}

// AllocPDRespSize is the size of ib_uverbs_alloc_pd_resp in bytes.
const AllocPDRespSize = 4

// Put encodes v into the first AllocPDRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *AllocPDResp) Put(b []byte) {
	clear(b[:AllocPDRespSize])
	le.PutUint32(b[0:], v.PDHandle)
}

// Parse decodes the first AllocPDRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *AllocPDResp) Parse(b []byte) error {
	if len(b) < AllocPDRespSize {
		return ErrShort
	}
	v.PDHandle = le.Uint32(b[0:])
	return nil
}

// DeallocPD is struct ib_uverbs_dealloc_pd.
type DeallocPD struct {
	PDHandle uint32
}

// DeallocPDSize is the size of ib_uverbs_dealloc_pd in bytes.
const DeallocPDSize = 4

// Put encodes v into the first DeallocPDSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *DeallocPD) Put(b []byte) {
	clear(b[:DeallocPDSize])
	le.PutUint32(b[0:], v.PDHandle)
}

// Parse decodes the first DeallocPDSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *DeallocPD) Parse(b []byte) error {
	if len(b) < DeallocPDSize {
		return ErrShort
	}
	v.PDHandle = le.Uint32(b[0:])
	return nil
}

// RegMR is struct ib_uverbs_reg_mr.
type RegMR struct {
	Response    uint64
	Start       uint64
	Length      uint64
	HCAVA       uint64 // hca_va: the address peers use; congruent to Start modulo the page
	PDHandle    uint32
	AccessFlags AccessFlags
}

// RegMRSize is the size of ib_uverbs_reg_mr in bytes.
const RegMRSize = 40

// Put encodes v into the first RegMRSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *RegMR) Put(b []byte) {
	clear(b[:RegMRSize])
	le.PutUint64(b[0:], v.Response)
	le.PutUint64(b[8:], v.Start)
	le.PutUint64(b[16:], v.Length)
	le.PutUint64(b[24:], v.HCAVA)
	le.PutUint32(b[32:], v.PDHandle)
	le.PutUint32(b[36:], uint32(v.AccessFlags))
}

// Parse decodes the first RegMRSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *RegMR) Parse(b []byte) error {
	if len(b) < RegMRSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	v.Start = le.Uint64(b[8:])
	v.Length = le.Uint64(b[16:])
	v.HCAVA = le.Uint64(b[24:])
	v.PDHandle = le.Uint32(b[32:])
	v.AccessFlags = AccessFlags(le.Uint32(b[36:]))
	return nil
}

// RegMRResp is struct ib_uverbs_reg_mr_resp.
type RegMRResp struct {
	MRHandle uint32
	LKey     uint32
	RKey     uint32
}

// RegMRRespSize is the size of ib_uverbs_reg_mr_resp in bytes.
const RegMRRespSize = 12

// Put encodes v into the first RegMRRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *RegMRResp) Put(b []byte) {
	clear(b[:RegMRRespSize])
	le.PutUint32(b[0:], v.MRHandle)
	le.PutUint32(b[4:], v.LKey)
	le.PutUint32(b[8:], v.RKey)
}

// Parse decodes the first RegMRRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *RegMRResp) Parse(b []byte) error {
	if len(b) < RegMRRespSize {
		return ErrShort
	}
	v.MRHandle = le.Uint32(b[0:])
	v.LKey = le.Uint32(b[4:])
	v.RKey = le.Uint32(b[8:])
	return nil
}

// DeregMR is struct ib_uverbs_dereg_mr.
type DeregMR struct {
	MRHandle uint32
}

// DeregMRSize is the size of ib_uverbs_dereg_mr in bytes.
const DeregMRSize = 4

// Put encodes v into the first DeregMRSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *DeregMR) Put(b []byte) {
	clear(b[:DeregMRSize])
	le.PutUint32(b[0:], v.MRHandle)
}

// Parse decodes the first DeregMRSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *DeregMR) Parse(b []byte) error {
	if len(b) < DeregMRSize {
		return ErrShort
	}
	v.MRHandle = le.Uint32(b[0:])
	return nil
}

package abi

// UCMHdr is struct rdma_ucm_cmd_hdr, the head of every command given to write() on /dev/infiniband/rdma_cm.
// In and Out count bytes of the request and of the response, without this header.
type UCMHdr struct {
	Cmd UCMCommand
	In  uint16
	Out uint16
}

// UCMHdrSize is the size of rdma_ucm_cmd_hdr in bytes.
const UCMHdrSize = 8

// Put encodes v into the first UCMHdrSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMHdr) Put(b []byte) {
	clear(b[:UCMHdrSize])
	le.PutUint32(b[0:], uint32(v.Cmd))
	le.PutUint16(b[4:], v.In)
	le.PutUint16(b[6:], v.Out)
}

// Parse decodes the first UCMHdrSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMHdr) Parse(b []byte) error {
	if len(b) < UCMHdrSize {
		return ErrShort
	}
	v.Cmd = UCMCommand(le.Uint32(b[0:]))
	v.In = le.Uint16(b[4:])
	v.Out = le.Uint16(b[6:])
	return nil
}

// UCMCreateID is struct rdma_ucm_create_id.
type UCMCreateID struct {
	UID      uint64 // comes back in the events of the id; the kernel sends none while it is 0
	Response uint64
	PS       UCMPortSpace
	QPType   QPType
}

// UCMCreateIDSize is the size of rdma_ucm_create_id in bytes.
const UCMCreateIDSize = 24

// Put encodes v into the first UCMCreateIDSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMCreateID) Put(b []byte) {
	clear(b[:UCMCreateIDSize])
	le.PutUint64(b[0:], v.UID)
	le.PutUint64(b[8:], v.Response)
	le.PutUint16(b[16:], uint16(v.PS))
	b[18] = uint8(v.QPType)
}

// Parse decodes the first UCMCreateIDSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMCreateID) Parse(b []byte) error {
	if len(b) < UCMCreateIDSize {
		return ErrShort
	}
	v.UID = le.Uint64(b[0:])
	v.Response = le.Uint64(b[8:])
	v.PS = UCMPortSpace(le.Uint16(b[16:]))
	v.QPType = QPType(b[18])
	return nil
}

// UCMCreateIDResp is struct rdma_ucm_create_id_resp.
type UCMCreateIDResp struct {
	ID uint32 // 0 is an id like any other
}

// UCMCreateIDRespSize is the size of rdma_ucm_create_id_resp in bytes.
const UCMCreateIDRespSize = 4

// Put encodes v into the first UCMCreateIDRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMCreateIDResp) Put(b []byte) {
	clear(b[:UCMCreateIDRespSize])
	le.PutUint32(b[0:], v.ID)
}

// Parse decodes the first UCMCreateIDRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMCreateIDResp) Parse(b []byte) error {
	if len(b) < UCMCreateIDRespSize {
		return ErrShort
	}
	v.ID = le.Uint32(b[0:])
	return nil
}

// UCMDestroyID is struct rdma_ucm_destroy_id.
type UCMDestroyID struct {
	Response uint64
	ID       uint32
}

// UCMDestroyIDSize is the size of rdma_ucm_destroy_id in bytes.
const UCMDestroyIDSize = 16

// Put encodes v into the first UCMDestroyIDSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMDestroyID) Put(b []byte) {
	clear(b[:UCMDestroyIDSize])
	le.PutUint64(b[0:], v.Response)
	le.PutUint32(b[8:], v.ID)
}

// Parse decodes the first UCMDestroyIDSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMDestroyID) Parse(b []byte) error {
	if len(b) < UCMDestroyIDSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	v.ID = le.Uint32(b[8:])
	return nil
}

// UCMDestroyIDResp is struct rdma_ucm_destroy_id_resp.
type UCMDestroyIDResp struct {
	EventsReported uint32 // events of the id that GET_EVENT gave
}

// UCMDestroyIDRespSize is the size of rdma_ucm_destroy_id_resp in bytes.
const UCMDestroyIDRespSize = 4

// Put encodes v into the first UCMDestroyIDRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMDestroyIDResp) Put(b []byte) {
	clear(b[:UCMDestroyIDRespSize])
	le.PutUint32(b[0:], v.EventsReported)
}

// Parse decodes the first UCMDestroyIDRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMDestroyIDResp) Parse(b []byte) error {
	if len(b) < UCMDestroyIDRespSize {
		return ErrShort
	}
	v.EventsReported = le.Uint32(b[0:])
	return nil
}

// UCMMigrateID is struct rdma_ucm_migrate_id.
type UCMMigrateID struct {
	Response uint64
	ID       uint32
	FD       uint32
}

// UCMMigrateIDSize is the size of rdma_ucm_migrate_id in bytes.
const UCMMigrateIDSize = 16

// Put encodes v into the first UCMMigrateIDSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMMigrateID) Put(b []byte) {
	clear(b[:UCMMigrateIDSize])
	le.PutUint64(b[0:], v.Response)
	le.PutUint32(b[8:], v.ID)
	le.PutUint32(b[12:], v.FD)
}

// Parse decodes the first UCMMigrateIDSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMMigrateID) Parse(b []byte) error {
	if len(b) < UCMMigrateIDSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	v.ID = le.Uint32(b[8:])
	v.FD = le.Uint32(b[12:])
	return nil
}

// UCMMigrateResp is struct rdma_ucm_migrate_resp.
type UCMMigrateResp struct {
	EventsReported uint32
}

// UCMMigrateRespSize is the size of rdma_ucm_migrate_resp in bytes.
const UCMMigrateRespSize = 4

// Put encodes v into the first UCMMigrateRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMMigrateResp) Put(b []byte) {
	clear(b[:UCMMigrateRespSize])
	le.PutUint32(b[0:], v.EventsReported)
}

// Parse decodes the first UCMMigrateRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMMigrateResp) Parse(b []byte) error {
	if len(b) < UCMMigrateRespSize {
		return ErrShort
	}
	v.EventsReported = le.Uint32(b[0:])
	return nil
}

// UCMSetOption is struct rdma_ucm_set_option. OptVal is the address of OptLen bytes.
type UCMSetOption struct {
	OptVal  uint64
	ID      uint32
	Level   UCMOptionLevel
	OptName UCMOption
	OptLen  uint32
}

// UCMSetOptionSize is the size of rdma_ucm_set_option in bytes.
const UCMSetOptionSize = 24

// Put encodes v into the first UCMSetOptionSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMSetOption) Put(b []byte) {
	clear(b[:UCMSetOptionSize])
	le.PutUint64(b[0:], v.OptVal)
	le.PutUint32(b[8:], v.ID)
	le.PutUint32(b[12:], uint32(v.Level))
	le.PutUint32(b[16:], uint32(v.OptName))
	le.PutUint32(b[20:], v.OptLen)
}

// Parse decodes the first UCMSetOptionSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMSetOption) Parse(b []byte) error {
	if len(b) < UCMSetOptionSize {
		return ErrShort
	}
	v.OptVal = le.Uint64(b[0:])
	v.ID = le.Uint32(b[8:])
	v.Level = UCMOptionLevel(le.Uint32(b[12:]))
	v.OptName = UCMOption(le.Uint32(b[16:]))
	v.OptLen = le.Uint32(b[20:])
	return nil
}

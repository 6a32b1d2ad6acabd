package netlinkmgr

// Messages carry attributes behind the netlink header and no header of their
// own (drivers/infiniband/core/nldev.c). Unknown attributes are skipped; one of
// a wrong size, or a missing one without which the object makes no sense, is an
// error.

// handle is what every answer about a device begins with.
type handle struct {
	index    uint32
	name     string
	hasIndex bool
}

func (h *handle) take(a *attrs) bool {
	switch a.typ {
	case attrDevIndex:
		h.index, h.hasIndex = a.u32(), true
	case attrDevName:
		h.name = a.str()
	default:
		return false
	}
	return true
}

func (h *handle) check(a *attrs, what string) error {
	if a.err != nil {
		return a.err
	}
	if !h.hasIndex || h.name == "" {
		return &MessageError{Reason: what + " without device index and name"}
	}
	return nil
}

func guidptr(a *attrs) *GUID { g := GUID(a.u64()); return &g }

func u64ptr(a *attrs) *uint64 { v := a.u64(); return &v }

func parseDevice(b []byte) (Device, error) {
	var d Device
	var h handle
	a := newAttrs(b)
	for a.next() {
		if h.take(a) {
			continue
		}
		switch a.typ {
		case attrPortIndex:
			d.Ports = a.u32()
		case attrCapFlags:
			d.Caps = u64ptr(a)
		case attrFWVersion:
			d.Firmware = a.str()
		case attrNodeGUID:
			d.NodeGUID = guidptr(a)
		case attrSysImageGUID:
			d.SysImageGUID = guidptr(a)
		case attrDevNodeType:
			t := NodeType(a.u8())
			d.NodeType = &t
		case attrDevProtocol:
			d.Protocol = a.str()
		case attrDevDIM:
			d.AdaptiveMod = a.boolptr()
		}
	}
	d.Index, d.Name = h.index, h.name
	return d, h.check(a, "device")
}

func parsePort(b []byte) (Port, error) {
	var p Port
	var h handle
	a := newAttrs(b)
	for a.next() {
		if h.take(a) {
			continue
		}
		switch a.typ {
		case attrPortIndex:
			p.Port = a.u32()
		case attrCapFlags:
			p.Caps = u64ptr(a)
		case attrSubnetPrefix:
			p.SubnetPrefix = guidptr(a)
		case attrLID:
			p.LID = a.u32ptr()
		case attrSMLID:
			p.SMLID = a.u32ptr()
		case attrLMC:
			v := a.u8()
			p.LMC = &v
		case attrPortState:
			s := PortState(a.u8())
			p.State = &s
		case attrPortPhysState:
			s := PhysState(a.u8())
			p.PhysState = &s
		case attrNDevName:
			p.NetDev = a.str()
		case attrNDevIndex:
			p.NetDevIndex = a.u32()
		}
	}
	p.Device, p.DeviceIndex = h.name, h.index
	if err := h.check(a, "port"); err != nil {
		return p, err
	}
	if p.Port == 0 {
		return p, &MessageError{Reason: "port without number"}
	}
	return p, nil
}

func parseSystem(b []byte) (System, error) {
	var s System
	a := newAttrs(b)
	for a.next() {
		switch a.typ {
		case attrSysNetNSMode:
			s.NetNS = NetNSMode(a.u8())
		case attrSysCopyOnFork:
			s.CopyOnFork = a.u8() != 0
		case attrSysPrivilegedQKey:
			s.PrivilegedQKey = a.boolptr()
		case attrSysMonitorMode:
			s.Monitor = a.boolptr()
		}
	}
	return s, a.err
}

func parseCharDev(b []byte) (CharDev, error) {
	var c CharDev
	a := newAttrs(b)
	for a.next() {
		switch a.typ {
		case attrCharDevName:
			c.Name = a.str()
		case attrCharDevABI:
			c.ABI = a.u64()
		case attrCharDev:
			c.Dev = a.u64()
		case attrUverbsDriverID:
			c.Driver, c.known = a.number(), true
		}
	}
	if a.err == nil && c.Name == "" {
		return c, &MessageError{Reason: "character device without name"}
	}
	return c, a.err
}

// parseSummary reads how many objects of each kind a device has.
func parseSummary(b []byte) ([]Counter, error) {
	return parseTable(b, "resource summary", attrResSummary, attrResSummaryEntry, attrResSummaryEntryName, attrResSummaryEntryCurr)
}

// parseCounters reads a port's hardware counters.
func parseCounters(b []byte) ([]Counter, error) {
	return parseTable(b, "counters", attrStatHWCounters, attrStatHWCounterEntry, attrStatHWCounterName, attrStatHWCounterValue)
}

func parseTable(b []byte, what string, table, entry, nameAttr, valueAttr attrType) ([]Counter, error) {
	list, found := []Counter{}, false
	a := newAttrs(b)
	for a.next() {
		if a.typ != table {
			continue
		}
		found = true
		a.entries(entry, func(e []byte) error {
			var c Counter
			var value bool
			in := newAttrs(e)
			for in.next() {
				switch in.typ {
				case nameAttr:
					c.Name = in.str()
				case valueAttr:
					c.Value, value = in.u64(), true
				}
			}
			if in.err == nil && (c.Name == "" || !value) {
				return &MessageError{Reason: what + ": an entry without name or value"}
			}
			list = append(list, c)
			return in.err
		})
	}
	if a.err == nil && !found {
		return nil, &MessageError{Reason: what + ": no table"}
	}
	return list, a.err
}

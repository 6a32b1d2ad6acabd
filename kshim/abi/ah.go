package abi

// PathBitsUDP in an address vector's src_path_bits says that the dlid beside it
// is a soft device's UDP port (0: 4791). RoCE uses neither. Without the mark a
// soft device ignores a dlid, as rdma_rxe does: UCX keeps its own number there.
const PathBitsUDP = 1

// SetUDPPort names the UDP port of a soft device.
func (v *QPDest) SetUDPPort(port uint16) { v.DLID, v.SrcPathBits = port, PathBitsUDP }

// UDPPort is the port that SetUDPPort named, or 0.
func (v *QPDest) UDPPort() uint16 {
	if v.SrcPathBits != PathBitsUDP {
		return 0
	}
	return v.DLID
}

// AHAttr returns the address in the order of CREATE_AH.
func (v *QPDest) AHAttr() AHAttr {
	return AHAttr{
		DGID: v.DGID, FlowLabel: v.FlowLabel, DLID: v.DLID, SGIDIndex: v.SGIDIndex,
		HopLimit: v.HopLimit, TrafficClass: v.TrafficClass, SL: v.SL, SrcPathBits: v.SrcPathBits,
		StaticRate: v.StaticRate, IsGlobal: v.IsGlobal, PortNum: v.PortNum,
	}
}

// QPDest returns the address in the order of MODIFY_QP.
func (v *AHAttr) QPDest() QPDest {
	return QPDest{
		DGID: v.DGID, FlowLabel: v.FlowLabel, DLID: v.DLID, SGIDIndex: v.SGIDIndex,
		HopLimit: v.HopLimit, TrafficClass: v.TrafficClass, SL: v.SL, SrcPathBits: v.SrcPathBits,
		StaticRate: v.StaticRate, IsGlobal: v.IsGlobal, PortNum: v.PortNum,
	}
}

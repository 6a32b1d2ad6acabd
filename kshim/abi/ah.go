package abi

// QPDest returns the address in the order of MODIFY_QP.
func (v *AHAttr) QPDest() QPDest {
	return QPDest{
		DGID: v.DGID, FlowLabel: v.FlowLabel, DLID: v.DLID, SGIDIndex: v.SGIDIndex,
		HopLimit: v.HopLimit, TrafficClass: v.TrafficClass, SL: v.SL, SrcPathBits: v.SrcPathBits,
		StaticRate: v.StaticRate, IsGlobal: v.IsGlobal, PortNum: v.PortNum,
	}
}

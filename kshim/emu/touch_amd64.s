#include "textflag.h"

// func touch(p *uint32)
TEXT ·touch(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	LOCK
	ADDL $0, 0(AX)
	RET

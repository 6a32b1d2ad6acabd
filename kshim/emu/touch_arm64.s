#include "textflag.h"

// func touch(p *uint32)
TEXT ·touch(SB), NOSPLIT, $0-8
	MOVD p+0(FP), R0
again:
	LDAXRW (R0), R1
	STLXRW R1, (R0), R2
	CBNZ R2, again
	RET

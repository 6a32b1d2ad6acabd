//go:build race

#include "textflag.h"

// func add64(p *uint64, n uint64) (old uint64)
TEXT ·add64(SB), NOSPLIT, $0-24
	MOVD p+0(FP), R0
	MOVD n+8(FP), R1
again:
	LDAXR (R0), R2
	ADD R1, R2, R3
	STLXR R3, (R0), R4
	CBNZ R4, again
	MOVD R2, old+16(FP)
	RET

// func cas64(p *uint64, compare, swap uint64) (old uint64)
TEXT ·cas64(SB), NOSPLIT, $0-32
	MOVD p+0(FP), R0
	MOVD compare+8(FP), R1
	MOVD swap+16(FP), R2
again:
	LDAXR (R0), R3
	CMP R1, R3
	BNE done
	STLXR R2, (R0), R4
	CBNZ R4, again
done:
	MOVD R3, old+24(FP)
	RET

// func store64(p *uint64, v uint64)
TEXT ·store64(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD v+8(FP), R1
	STLR R1, (R0)
	RET

// func store32(p *uint32, v uint32)
TEXT ·store32(SB), NOSPLIT, $0-12
	MOVD p+0(FP), R0
	MOVWU v+8(FP), R1
	STLRW R1, (R0)
	RET

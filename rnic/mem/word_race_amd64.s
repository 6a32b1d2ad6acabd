//go:build race

#include "textflag.h"

// func add64(p *uint64, n uint64) (old uint64)
TEXT ·add64(SB), NOSPLIT, $0-24
	MOVQ p+0(FP), BX
	MOVQ n+8(FP), AX
	LOCK
	XADDQ AX, 0(BX)
	MOVQ AX, old+16(FP)
	RET

// func cas64(p *uint64, compare, swap uint64) (old uint64)
TEXT ·cas64(SB), NOSPLIT, $0-32
	MOVQ p+0(FP), BX
	MOVQ compare+8(FP), AX
	MOVQ swap+16(FP), CX
	LOCK
	CMPXCHGQ CX, 0(BX)
	MOVQ AX, old+24(FP)
	RET

// func store64(p *uint64, v uint64)
TEXT ·store64(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), BX
	MOVQ v+8(FP), AX
	XCHGQ AX, 0(BX)
	RET

// func store32(p *uint32, v uint32)
TEXT ·store32(SB), NOSPLIT, $0-12
	MOVQ p+0(FP), BX
	MOVL v+8(FP), AX
	XCHGL AX, 0(BX)
	RET

#include "textflag.h"

// Constants to fold over D bits: x^(D+32) and x^(D-32), reflected, one bit to
// the left. TestConstants computes them.
DATA over2048<>+0(SB)/8, $0x11542778a
DATA over2048<>+8(SB)/8, $0x1322d1430
GLOBL over2048<>(SB), RODATA, $16
DATA over512<>+0(SB)/8, $0x154442bd4
DATA over512<>+8(SB)/8, $0x1c6e41596
GLOBL over512<>(SB), RODATA, $16
DATA over128<>+0(SB)/8, $0x1751997d0
DATA over128<>+8(SB)/8, $0x0ccaa009e
GLOBL over128<>(SB), RODATA, $16

// FOLD moves the 16-byte lanes of acc over as many bits as the constants in Z0
// say, and adds data. It spoils tmp.
#define FOLD(acc, tmp, data) \
	VPCLMULQDQ $0x11, Z0, acc, tmp  \
	VPCLMULQDQ $0x00, Z0, acc, acc  \
	VPTERNLOGD $0x96, data, tmp, acc

// LAST moves the lane in X1 over 128 bits and adds lane.
#define LAST(lane) \
	VPCLMULQDQ $0x11, X0, X1, X5 \
	VPCLMULQDQ $0x00, X0, X1, X1 \
	VPXOR      X5, X1, X1        \
	VPXOR      lane, X1, X1

// JOIN makes the lane X1 of Z1, Z2, Z3 and Z4.
#define JOIN \
	VBROADCASTI32X4 over512<>(SB), Z0 \
	FOLD(Z1, Z5, Z2)                 \
	FOLD(Z1, Z5, Z3)                 \
	FOLD(Z1, Z5, Z4)                 \
	VEXTRACTI32X4 $1, Z1, X2         \
	VEXTRACTI32X4 $2, Z1, X3         \
	VEXTRACTI32X4 $3, Z1, X4         \
	VMOVDQU       over128<>(SB), X0   \
	LAST(X2)                         \
	LAST(X3)                         \
	LAST(X4)

// func fold(p *byte, n int, r uint32) (lo, hi uint64)
TEXT ·fold(SB), NOSPLIT, $0-40
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVL r+16(FP), AX
	VMOVD AX, X5
	VPXORQ (SI), Z5, Z1
	VMOVDQU64 64(SI), Z2
	VMOVDQU64 128(SI), Z3
	VMOVDQU64 192(SI), Z4
	VBROADCASTI32X4 over2048<>(SB), Z0
	JMP next
turn:
	FOLD(Z1, Z5, (SI))
	FOLD(Z2, Z6, 64(SI))
	FOLD(Z3, Z7, 128(SI))
	FOLD(Z4, Z8, 192(SI))
next:
	ADDQ $256, SI
	SUBQ $256, CX
	JNZ  turn
	JOIN
	VZEROUPPER
	MOVQ   X1, lo+24(FP)
	PEXTRQ $1, X1, hi+32(FP)
	RET

// func foldCopy(dst, src *byte, n int) (lo, hi uint64)
TEXT ·foldCopy(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VMOVDQU64 (SI), Z1
	VMOVDQU64 64(SI), Z2
	VMOVDQU64 128(SI), Z3
	VMOVDQU64 192(SI), Z4
	VMOVDQU64 Z1, (DI)
	VMOVDQU64 Z2, 64(DI)
	VMOVDQU64 Z3, 128(DI)
	VMOVDQU64 Z4, 192(DI)
	VBROADCASTI32X4 over2048<>(SB), Z0
	JMP next
turn:
	VMOVDQU64 (SI), Z9
	VMOVDQU64 64(SI), Z10
	VMOVDQU64 128(SI), Z11
	VMOVDQU64 192(SI), Z12
	VMOVDQU64 Z9, (DI)
	VMOVDQU64 Z10, 64(DI)
	VMOVDQU64 Z11, 128(DI)
	VMOVDQU64 Z12, 192(DI)
	FOLD(Z1, Z5, Z9)
	FOLD(Z2, Z6, Z10)
	FOLD(Z3, Z7, Z11)
	FOLD(Z4, Z8, Z12)
next:
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $256, CX
	JNZ  turn
	JOIN
	VZEROUPPER
	MOVQ   X1, lo+24(FP)
	PEXTRQ $1, X1, hi+32(FP)
	RET

// func clmul(a, b uint32) uint64
TEXT ·clmul(SB), NOSPLIT, $0-16
	MOVL a+0(FP), X0
	MOVL b+4(FP), X1
	PCLMULQDQ $0, X1, X0
	MOVQ X0, ret+8(FP)
	RET

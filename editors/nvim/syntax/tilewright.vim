" Programs of tilewright in the text form.

if exists("b:current_syntax")
  finish
endif

syn match twComment "//.*$"
syn match twComment "^\s*of\s\+[@A-Za-z_].*$"
syn region twString start=+"+ skip=+\\.+ end=+"+
syn match twDeclaration "^\s*\zs\(func\|module\|kernel\)\>"
syn match twStorage "^\s*\zs\(in\|out\|temp\|alloc\|tensor_map\|mbarriers\|semaphore\|role\)\>"
syn match twControl "^\s*\zs\(for\|block\|init\|if\|leader\|roles\)\>"
syn match twBarrier "^\s*\zs\(barrier\|commit\|wait\|await\|expect\|arrive\|fence\|acquire\|release\)\>"
syn match twOperator "\<\(floordiv\|mod\|min\|max\|xor\|select\|where\|assume\|reduce\)\>"
syn match twType "\<\(bool\|i4\|i8\|i16\|i32\|i64\|u4\|u8\|u16\|u32\|u64\|f16\|bf16\|tf32\|f8e4m3\|f8e5m2\|f8e8m0\|f32\|f64\)\>"
syn match twNumber "\<\d\+\(\.\d\+\)\?\(e[+-]\?\d\+\)\?\(tf32\|bf16\|f8e4m3\|f8e5m2\|f8e8m0\|[fiu]\d\+\)\?\>"
syn match twBoolean "\<\(true\|false\)\>"
syn match twScope "@[A-Za-z_.]\+"

hi def link twComment Comment
hi def link twString String
hi def link twDeclaration Keyword
hi def link twStorage StorageClass
hi def link twControl Repeat
hi def link twBarrier PreProc
hi def link twOperator Operator
hi def link twType Type
hi def link twNumber Number
hi def link twBoolean Boolean
hi def link twScope Special

let b:current_syntax = "tilewright"

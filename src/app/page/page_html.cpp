#include "app/page/page_html.h"

// The assembler takes the file as it is; a string literal of its size would take the compiler seconds.
asm(".section .rodata\n"
    ".global foretoken_page_begin, foretoken_page_end\n"
    "foretoken_page_begin: .incbin \"" FORETOKEN_PAGE_FILE
    "\"\n"
    "foretoken_page_end: .byte 0\n"
    ".text\n");
extern const char foretoken_page_begin[], foretoken_page_end[];

namespace foretoken {

std::string_view page_html() {
  return {foretoken_page_begin, foretoken_page_end};
}

}  // namespace foretoken

// C++'s new and delete, with exact sizes: they come as malloc (and aligned_alloc or posix_memalign).
#include <cstddef>
#include <new>

extern "C" {

void *cpp_new(size_t size)
{
    return ::operator new(size);
}

void *cpp_new_array(size_t size)
{
    return ::operator new[](size);
}

void *cpp_new_nothrow(size_t size)
{
    return ::operator new(size, std::nothrow);
}

void *cpp_new_aligned(size_t size)
{
    return ::operator new(size, std::align_val_t(64));
}

void cpp_delete(void *block)
{
    ::operator delete(block);
}

void cpp_delete_array(void *block)
{
    ::operator delete[](block);
}

void cpp_delete_aligned(void *block)
{
    ::operator delete(block, std::align_val_t(64));
}

// An exception takes memory of its own: 0 if it was thrown and caught, as it must be.
int cpp_new_too_much()
{
    try {
        ::operator delete(::operator new(static_cast<size_t>(1) << 62));
    } catch (const std::bad_alloc &) {
        return 0;
    }
    return 1;
}
}

// SPDX-License-Identifier: Apache-2.0
#include "picture/text.hpp"

#include <array>

namespace rehearse::picture {

namespace {

// Advances of " " to "~" in units of 1/2048 of the size.
constexpr std::array<short, 95> regular{
    651,  821,  942,  1716, 1303, 1946, 1597, 563,  799,  799,  1024, 1716, 651,  739,  651,  690,  1303, 1303, 1303,
    1303, 1303, 1303, 1303, 1303, 1303, 1303, 690,  690,  1716, 1716, 1716, 1087, 2048, 1401, 1405, 1430, 1577, 1294,
    1178, 1587, 1540, 604,  604,  1343, 1141, 1767, 1532, 1612, 1235, 1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403,
    1251, 1403, 799,  690,  799,  1716, 1024, 1024, 1255, 1300, 1126, 1300, 1260, 721,  1300, 1298, 569,  569,  1186,
    569,  1995, 1298, 1253, 1300, 1300, 842,  1067, 803,  1298, 1212, 1675, 1212, 1212, 1075, 1303, 690,  1303, 1716};
constexpr std::array<short, 95> heavy{
    713,  934,  1067, 1716, 1425, 2052, 1786, 627,  936,  936,  1071, 1716, 778,  850,  778,  748,  1425, 1425, 1425,
    1425, 1425, 1425, 1425, 1425, 1425, 1425, 819,  819,  1716, 1716, 1716, 1188, 2048, 1585, 1561, 1503, 1700, 1399,
    1399, 1681, 1714, 762,  762,  1587, 1305, 2038, 1714, 1741, 1501, 1741, 1577, 1475, 1397, 1663, 1585, 2259, 1579,
    1483, 1485, 936,  748,  936,  1716, 1024, 1024, 1382, 1466, 1214, 1466, 1389, 891,  1466, 1458, 702,  702,  1362,
    702,  2134, 1458, 1407, 1466, 1466, 1010, 1219, 979,  1458, 1335, 1892, 1321, 1335, 1192, 1458, 748,  1458, 1716};

}  // namespace

double text_width(std::string_view text, double size, bool bold) {
    const auto& widths = bold ? heavy : regular;
    double units = 0;
    for (const char c : text) {
        const auto code = static_cast<unsigned char>(c);
        if ((code & 0xC0U) == 0x80U) continue;  // of a letter that has been counted
        units += code >= 32 && code < 127 ? widths.at(code - 32U) : widths.at('0' - 32);
    }
    return units * size / 2048;
}

std::vector<std::string> wrapped(std::string_view text, double size, double room) {
    std::vector<std::string> lines{""};
    std::size_t space = std::string::npos;  // the last of the line
    for (const char c : text) {
        if (c == '\n') {
            lines.emplace_back();
            space = std::string::npos;
            continue;
        }
        std::string& line = lines.back();
        if (c == ' ') space = line.size();
        line += c;
        const bool inside_letter = (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
        if (c == ' ' || inside_letter || line.size() == 1 || text_width(line, size) <= room) continue;
        const bool breaks = space != std::string::npos;
        const std::string rest = line.substr(breaks ? space + 1 : line.size() - 1);
        line.resize(breaks ? space : line.size() - 1);
        lines.push_back(rest);
        space = std::string::npos;
    }
    return lines;
}

}  // namespace rehearse::picture

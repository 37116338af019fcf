#include "kernel/operator_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "kernel/validate.h"

namespace foretoken::operator_table_test {

using testing::HasSubstr;

struct Table {
  CsvReader csv;
  OperatorRowReader reader;
  explicit Table(const std::string& text)
      : csv(CsvReader::from_text(text, "table.csv")), reader(operator_table_kind(csv.columns()).value(), csv) {}
  std::optional<OperatorRow> next(std::string& why) {
    EXPECT_TRUE(csv.next());
    return reader.read(csv, why);
  }
  OperatorRow next() {
    std::string why;
    const std::optional<OperatorRow> row = next(why);
    EXPECT_TRUE(row.has_value()) << why;
    return row.value_or(OperatorRow{});
  }
};

TEST(OperatorTable, multiplies_are_gemms_in_fp32_and_keep_their_batch) {
  Table table(
      "device,op,split,batch,m,n,k,latency_us,kernel\n"
      "Tesla T4,linear,train,1,64,128,256,50.5,volta_sgemm\n"
      "Tesla T4,bmm,test,12,64,128,256,60,volta_sgemm\n");
  const OperatorRow linear = table.next();
  EXPECT_EQ(table.reader.device(table.csv), "Tesla T4");
  EXPECT_EQ(table.reader.measured_us(table.csv), 50.5);
  EXPECT_EQ(linear.variant, "eager linear") << "the kernel that was measured is not the predictor's to know";
  EXPECT_EQ(std::get<GemmShape>(linear.shape), (GemmShape{.m = 64, .n = 128, .k = 256, .scheme = Scheme::fp32}));
  EXPECT_EQ(std::get<GemmShape>(table.next().shape).batch, 12);
}

TEST(OperatorTable, vector_operations_become_elementwise_activation_softmax_and_norm) {
  Table table(
      "device,op,rows,cols,latency_us\nd,add,3,5,1\nd,powu,3,5,1\nd,gelu,3,5,1\nd,softmax,3,5,1\nd,ln,3,5,1\nd,roll,3,"
      "5,1\n");
  const auto add = std::get<ElementwiseShape>(table.next().shape);
  EXPECT_EQ(table.reader.family(table.csv), "elementwise");
  EXPECT_EQ(add.elements, 15);
  EXPECT_EQ(add.inputs, 2);
  EXPECT_EQ(add.dtype, DType::fp32);
  const auto power = std::get<ElementwiseShape>(table.next().shape);
  EXPECT_EQ(power.inputs, 1);
  EXPECT_GT(power.flops_per_element, add.flops_per_element);
  EXPECT_FALSE(std::get<ActivationShape>(table.next().shape).gated);
  EXPECT_EQ(std::get<SoftmaxShape>(table.next().shape).width, 5);
  EXPECT_TRUE(std::get<NormShape>(table.next().shape).layer_norm);
  std::string why;
  EXPECT_FALSE(table.next(why).has_value());
  EXPECT_THAT(why, HasSubstr("roll"));
  EXPECT_EQ(table.reader.family(table.csv), "");
}

TEST(OperatorTable, a_traced_node_has_the_sizes_of_its_call_and_reads_what_is_not_broadcast) {
  Table table(
      "device,op,fw_ops,in_shapes,fw_us\n"
      "d,Linear,[['Linear';(8192;1024;4096)]],[(16;512;1024)],7\n"
      "d,BMM,[['BMM';(256;512;64;128)]],[(1;1)],7\n"
      "d,VECadd,[['VECadd';(131072;512)]],[(16;16;512;512);(16;1;1;512)],7\n"
      "d,VECadd,[['VECadd';(64;512)]],[(64;512);(64;512)],7\n"
      "d,Linear,[],[],7\nd,getitem,[['MEM';((1;);(1;))]],[(1;)],7\n");
  EXPECT_EQ(std::get<GemmShape>(table.next().shape),
            (GemmShape{.m = 8192, .n = 4096, .k = 1024, .scheme = Scheme::fp32}));
  EXPECT_EQ(std::get<GemmShape>(table.next().shape),
            (GemmShape{.m = 512, .n = 128, .k = 64, .batch = 256, .scheme = Scheme::fp32}));
  EXPECT_EQ(std::get<ElementwiseShape>(table.next().shape).inputs, 1);
  EXPECT_EQ(std::get<ElementwiseShape>(table.next().shape).inputs, 2);
  std::string why;
  EXPECT_FALSE(table.next(why).has_value());
  EXPECT_THAT(why, HasSubstr("3 sizes"));
  EXPECT_FALSE(table.next(why).has_value());
  EXPECT_THAT(why, HasSubstr("getitem"));
}

TEST(OperatorTable, a_traced_multiply_of_views_copies_them_and_never_the_probabilities) {
  Table table(
      "device,op,fw_ops,in_shapes,fw_us\n"
      "d,BMM,[['BMM';(8;512;64;512)]],[(2;4;512;64);(2;4;64;512)],7\n"
      "d,BMM,[['BMM';(8;512;512;64)]],[(2;4;512;512);(2;4;512;64)],7\n"
      "d,BMM,[['BMM';(8;512;64;512)]],[(8;512;64);(8;64;512)],7\n"
      "d,Linear,[['Linear';(8192;1024;4096)]],[(16;512;1024)],7\n");
  EXPECT_EQ(table.next().copied, 2 * 2 * 4 * 512 * 64);
  EXPECT_EQ(table.next().copied, 2 * 4 * 512 * 64);
  EXPECT_EQ(table.next().copied, 0);
  EXPECT_EQ(table.next().copied, 0);
}

TEST(OperatorTable, milliseconds_are_milliseconds_and_empty_sizes_are_elements) {
  Table table("device,op,m,n,k,latency_ms\nA100,gelu,4096,,,0.05\nA100,matmul,64,128,256,0.2\nA100,softmax,7,9,,1\n");
  const auto gelu = std::get<ActivationShape>(table.next().shape);
  EXPECT_EQ(gelu.rows * gelu.width, 4096);
  EXPECT_EQ(gelu.dtype, DType::fp16);
  EXPECT_DOUBLE_EQ(table.reader.measured_us(table.csv), 50);
  EXPECT_EQ(std::get<GemmShape>(table.next().shape), (GemmShape{.m = 64, .n = 128, .k = 256, .scheme = Scheme::fp16}));
  EXPECT_EQ(std::get<SoftmaxShape>(table.next().shape).rows, 7);
}

TEST(OperatorTable, a_convolution_larger_than_its_image_is_not_expressible) {
  Table table(
      "device,batch,cin,cout,ksize,in_size,stride,pad,latency_us\n"
      "d,2,3,4,3,8,1,1,9\nd,2,3,4,7,2,1,0,9\n");
  const auto conv = std::get<ConvShape>(table.next().shape);
  EXPECT_EQ(conv.in_channels, 3);
  EXPECT_EQ(conv.kernel_width, 3);
  EXPECT_EQ(conv.scheme, Scheme::fp32);
  std::string why;
  EXPECT_FALSE(table.next(why).has_value());
}

TEST(OperatorTable, broken_sizes_are_refused_and_other_tables_are_not_ours) {
  Table table("device,op,rows,cols,latency_us\nd,add,-3,5,1\n");
  std::string why;
  EXPECT_THROW(table.next(why), InputError);
  EXPECT_EQ(operator_table_kind({"kernel", "dtype", "m", "n", "k", "latency_us"}), std::nullopt);
  EXPECT_EQ(operator_table_kind({}), std::nullopt);
}

TEST(OperatorTable, validation_reads_a_table_by_device_and_family_and_keeps_the_rows_asked_for) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "operator_table";
  std::filesystem::create_directories(folder);
  const auto path = folder / "table_of_ops.csv";
  write_file(path,
             "device,op,split,rows,cols,latency_us\n"
             "Tesla T4,add,train,1024,1024,70\nTesla T4,ln,test,1024,1024,70\nTesla T4,ln,train,1024,1024,70\n"
             "Tesla T4,roll,test,1,1,70\nno such device,add,test,1024,1024,70\n");
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  const auto maker = [](const Device& device, Caches /*caches*/) { return KernelPredictor(device); };
  const Validation all = validate_kernels({.data = path}, hardware, maker);
  ASSERT_EQ(all.groups.size(), 2u);
  EXPECT_EQ(all.groups[0].name, "t4/elementwise");
  EXPECT_EQ(all.groups[1].name, "t4/norm");
  EXPECT_EQ(all.overall.n, 3u);
  ASSERT_EQ(all.skipped.size(), 2u);
  const Validation test = validate_kernels({.data = path, .devices = {"t4"}, .where = {"split=test"}}, hardware, maker);
  EXPECT_EQ(test.overall.n, 1u);
  EXPECT_THROW(validate_kernels({.data = path, .where = {"split"}}, hardware, maker), InputError);
  EXPECT_THROW(validate_kernels({.data = path, .where = {"splat=test"}}, hardware, maker), InputError);
  std::filesystem::remove_all(folder);
}

TEST(OperatorTable, tuned_multiplies_keep_their_format_and_name_their_kernel) {
  Table table(
      "device,dtype,m,n,k,latency_us,library,split_k,kernel,out_dtype\n"
      "mi355x,mxfp4,64,128,256,5.5,asm,1,k,\nmi355x,fp8_block,1,512,6144,6.2,ck,3,k,\n"
      "mi308x,bf16,65536,512,6144,1.0,ck,3,k,\nmi308x,fp3,1,2,3,9,ck,3,k,\n");
  const OperatorRow first = table.next();
  EXPECT_EQ(table.reader.family(table.csv), "gemm");
  EXPECT_EQ(table.reader.device(table.csv), "mi355x");
  EXPECT_EQ(std::get<GemmShape>(first.shape), (GemmShape{.m = 64, .n = 128, .k = 256, .scheme = Scheme::mxfp4}));
  EXPECT_EQ(first.variant, "aiter");
  EXPECT_TRUE(first.tuned);
  EXPECT_EQ(std::get<GemmShape>(table.next().shape).scheme, Scheme::fp8_block);
  std::string why;
  EXPECT_FALSE(table.next(why));
  EXPECT_THAT(why, HasSubstr("latency_us = 1"));
  EXPECT_FALSE(table.next(why));
  EXPECT_THAT(why, HasSubstr("fp3"));
}

TEST(OperatorTable, tuned_experts_are_told_apart_by_formats_scales_and_number_of_kernels) {
  const std::string header =
      "device,tokens,hidden,inter,experts,topk,activation,dtype_a,dtype_w,scales,gated,latency_us,up_us,down_us,"
      "one_kernel\n";
  Table table(header +
              "mi355x,8,4096,192,128,8,silu,fp8,fp8,per_1x128,True,30,20,10,1\n"
              "mi355x,8,4096,192,128,8,silu,fp8,fp8,per_1x32,True,30,20,10,0\n"
              "mi355x,8,4096,192,128,8,silu,fp4,fp4,per_1x32,False,30,20,10,0\n"
              "mi355x,8,4096,192,128,8,silu,fp2,fp4,per_1x32,True,30,20,10,0\n"
              "mi355x,8,4096,192,4,8,silu,fp4,fp4,per_1x32,True,30,20,10,0\n"
              "mi355x,8,4096,192,128,8,silu,fp4,fp4,per_1x32,True,30,20,10,2\n"
              "mi355x,-8,4096,192,128,8,silu,fp4,fp4,per_1x32,True,30,20,10,0\n");
  const OperatorRow one = table.next();
  EXPECT_EQ(table.reader.family(table.csv), "moe");
  const auto& shape = std::get<MoeShape>(one.shape);
  EXPECT_EQ(shape.scheme, Scheme::fp8_block);
  EXPECT_EQ(shape.tokens, 8);
  EXPECT_EQ(shape.top_k, 8);
  EXPECT_EQ(shape.experts, 128);
  EXPECT_TRUE(shape.gated);
  EXPECT_EQ(one.variant, "aiter_1stage");
  EXPECT_EQ(table.next().variant, "aiter_2stages_mxfp8");
  const OperatorRow narrow = table.next();
  EXPECT_EQ(std::get<MoeShape>(narrow.shape).scheme, Scheme::mxfp4);
  EXPECT_FALSE(std::get<MoeShape>(narrow.shape).gated);
  std::string why;
  EXPECT_FALSE(table.next(why));
  EXPECT_THAT(why, HasSubstr("dtype_a = fp2"));
  EXPECT_FALSE(table.next(why));
  EXPECT_THAT(why, HasSubstr("topk = 8"));
  for (const char* column : {"one_kernel", "tokens"}) {
    try {
      table.next(why);
      FAIL() << column;
    } catch (const InputError& error) {
      EXPECT_THAT(std::string(error.what()), HasSubstr(column));
      EXPECT_THAT(std::string(error.what()), HasSubstr("table.csv"));
    }
  }
}

}  // namespace foretoken::operator_table_test

// Small files in the form of well-known data sets, with invented values. A file gives the numbers that pandas
// reads (texts as pandas.get_dummies numbers them), or scikit-learn for LIBSVM, or an error with its line.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "engine/data/readers/source.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

using DenseRows = std::vector<std::vector<double>>;

struct RealFile {
  std::string name, text;
  TableOptions options = {};
  std::vector<double> labels = {};
  DenseRows rows = {};
  std::string error = {};  // after the folder; if not empty, the file is refused
};

constexpr auto kDrop = MissingValues::kDrop, kMean = MissingValues::kMean;
const std::string kDropHint = "; problem.missing = \"drop\" leaves out such lines",
                  kMeanHint = kDropHint + ", and \"mean\" uses the mean of the column";

// A name is also the kind of the file, by its ending.
const std::vector<RealFile> kFiles = {
    {"iris.csv",
     "5.0,3.1,1.5,0.3,Iris-setosa\n6.2,2.7,4.4,1.4,Iris-versicolor\n6.9,3.2,5.6,2.2,Iris-virginica\n",
     {},
     {0, 1, 2},
     {{5, 3.1, 1.5, 0.3}, {6.2, 2.7, 4.4, 1.4}, {6.9, 3.2, 5.6, 2.2}}},
    {"iris_of_r.csv",
     "\"\",\"Sepal.Length\",\"Sepal.Width\",\"Species\"\n\"1\",5.0,3.1,\"setosa\"\n\"2\",6.2,2.7,"
     "\"virginica\"\n",
     {},
     {-1, 1},
     {{5, 3.1}, {6.2, 2.7}}},
    {"titanic.csv",
     "PassengerId,Survived,Pclass,Name,Sex,Age,Ticket,Fare,Cabin\n"
     "1,0,3,\"Doe, Mr. John \"\"Jack\"\"\",male,20,A/5 1,7.5,\n"
     "2,1,1,\"Roe, Mrs. Jane\",female,,PC 2,70.25,C8\n"
     "3,1,3,\"Poe, Miss. Ann\",female,30,113,8,\n",
     {.label = "survived", .columns = "Pclass, Sex, Age, Fare", .missing = kMean},
     {0, 1, 1},
     {{3, 0, 1, 20, 7.5}, {1, 1, 0, 25, 70.25}, {3, 1, 0, 30, 8}}},
    {"titanic_as_it_is.csv",
     "Survived,Sex,Age\n0,male,20\n1,female,\n",
     {.label = "Survived"},
     {},
     {},
     ":3: column 3, 'Age': no value ('')" + kMeanHint},
    {"adult.csv",
     "39, State-gov, 77, Bachelors, <=50K\n50, ?, 83, HS-grad, >50K\n38, Private, 21, HS-grad, >50K\n",
     {.missing = kDrop},
     {-1, 1},
     {{39, 0, 1, 77, 1, 0}, {38, 1, 0, 21, 0, 1}}},
    {"winequality.csv",
     "\"fixed acidity\";\"volatile acidity\";\"quality\"\n7.4;0.66;5\n8.1;0.25;6\n",
     {},
     {5, 6},
     {{7.4, 0.66}, {8.1, 0.25}}},
    {"boston.csv",
     "\"crim\",\"zn\",\"medv\"\n0.0061,18,24.5\n0.0273,0,21.4\n",
     {},
     {24.5, 21.4},
     {{0.0061, 18}, {0.0273, 0}}},
    {"boston_of_uci.csv",
     " 0.0061  18.00   2.310  0  0.5380\n 0.0273   0.00   7.070  0  0.4690\n",
     {},
     {},
     {},
     ":1: one field; expected features and a label; its fields seem to be separated by blanks: save it with "
     "commas "
     "between fields"},
    {"abalone.csv",
     "M,0.45,0.36,15\nF,0.5,0.4,7\nI,0.3,0.2,4\nM,0.35,0.26,9\n",
     {},
     {15, 7, 4, 9},
     {{0, 0, 1, 0.45, 0.36}, {1, 0, 0, 0.5, 0.4}, {0, 1, 0, 0.3, 0.2}, {0, 0, 1, 0.35, 0.26}}},
    {"pima.csv",
     "6,148,72,35,0,33.6,0.627,50,1\n1,85,66,29,0,26.6,0.351,31,0\n",
     {},
     {1, 0},
     {{6, 148, 72, 35, 0, 33.6, 0.627, 50}, {1, 85, 66, 29, 0, 26.6, 0.351, 31}}},
    {"german.csv",
     "A11 6 A34 A43 1169 1\nA12 48 A32 A43 5951 2\n",
     {},
     {},
     {},
     ":1: one field; expected features and a label; its fields seem to be separated by blanks: save it with "
     "commas "
     "between fields"},
    {"credit_g.csv",
     "checking,duration,other_parties,class\n'<0',6,none,good\n'no "
     "checking',48,guarantor,bad\n'<0',12,none,good\n",
     {},
     {1, -1, 1},
     {{1, 0, 6, 0, 1}, {0, 1, 48, 1, 0}, {1, 0, 12, 0, 1}}},
    {"mtcars.csv",
     "\"\",\"mpg\",\"cyl\",\"hp\"\n\"Mazda RX4\",21,6,110\n\"Fiat 128\",32.4,4,66\n\"Volvo "
     "142E\",21.4,4,109\n",
     {.label = "mpg"},
     {21, 32.4, 21.4},
     {{6, 110}, {4, 66}, {4, 109}}},
    {"mtcars_of_write_table.csv",
     "\"mpg\",\"cyl\",\"hp\"\n\"Mazda RX4\",21,6,110\n\"Fiat 128\",32.4,4,66\n",
     {},
     {},
     {},
     ":2: 4 fields, but the first line has 3; all lines need the same number: R leaves out the name of the "
     "row "
     "names; write with row.names = FALSE"},
    {"bank.csv",
     "\"age\";\"job\";\"balance\";\"y\"\n58;\"management\";2143;\"no\"\n44;\"technician\";-29;\"yes\"\n"
     "33;\"management\";2;\"no\"\n",
     {},
     {-1, 1, -1},
     {{58, 1, 0, 2143}, {44, 0, 1, -29}, {33, 1, 0, 2}}},
    {"penguins.csv",
     "species,island,bill_length_mm,sex\nAdelie,Dream,39.1,male\nGentoo,Biscoe,NA,NA\nGentoo,Biscoe,46.2,"
     "female\n",
     {.label = "species", .missing = kDrop},
     {-1, 1},
     {{0, 1, 39.1, 0, 1}, {1, 0, 46.2, 1, 0}}},
    {"penguins_with_means.csv",
     "species,bill_length_mm,sex\nAdelie,39,male\nGentoo,NA,NA\nGentoo,46,female\n",
     {.label = "1", .missing = kMean},
     {-1, 1, 1},
     {{39, 0, 1}, {42.5, 0, 0}, {46, 1, 0}}},
    {"auto_mpg.csv",
     "18,8,307,130,\"chevrolet chevelle malibu\"\n25,4,98,?,\"ford pinto\"\n30,4,79,70,\"peugeot 304\"\n",
     {.label = "1", .columns = "2-4", .missing = kMean},
     {18, 25, 30},
     {{8, 307, 130}, {4, 98, 100}, {4, 79, 70}}},
    {"auto_mpg_of_uci.csv",
     "18.0   8   307.0\t\"chevrolet chevelle malibu\"\n15.0   8   350.0\t\"buick skylark\"\n",
     {},
     {},
     {},
     ":1: column 1: '18.0   8   307.0' holds several numbers with blanks between them; write the same "
     "separator "
     "between all fields"},
    {"covtype.csv",
     "2596,51,3,258,0,1,0,0,5\n2785,155,18,242,0,0,1,0,2\n",
     {},
     {5, 2},
     {{2596, 51, 3, 258, 0, 1, 0, 0}, {2785, 155, 18, 242, 0, 0, 1, 0}}},
    {"windows.csv", "height,weight,label\r\n1.5,60,0\r\n1.75,80,1\r\n", {}, {0, 1}, {{1.5, 60}, {1.75, 80}}},
    {"old_mac.csv", "height,weight,label\r1.5,60,0\r1.75,80,1", {}, {0, 1}, {{1.5, 60}, {1.75, 80}}},
    {"excel.csv",
     "\xef\xbb\xbf\"height\";\"weight\";\"label\"\r\n1,5;60;0\r\n1,75;80;1\r\n",
     {},
     {0, 1},
     {{1.5, 60}, {1.75, 80}}},
    {"euros.csv",
     "umsatz;gewinn;y\n1.234,50;-2,5;1\n12.345.678,00;3;0\n987;0,25;1\n",
     {},
     {1, 0, 1},
     {{1234.5, -2.5}, {12345678, 3}, {987, 0.25}}},
    {"reviews.csv",
     "text,stars\n\"first line\nsecond line\",5\n",
     {},
     {},
     {},
     ":2: a quote is not closed at the end of its field; correct the field: line breaks in quotes are not "
     "read"},
    {"kaese.csv",
     "Gr\xc3\xb6\xc3\x9f"
     "e,Sorte\n3,K\xc3\xa4se\n4,Br\xc3\xb6tchen\n",
     {.label = "Sorte"},
     {1, -1},
     {{3}, {4}}},
    {"wdbc_of_kaggle.csv",
     "\"id\",\"diagnosis\",\"radius_mean\",\"texture_mean\",\n842,M,17.9,10.3\n844,B,13.5,14.3\n",
     {.label = "diagnosis", .columns = "3-4"},
     {1, -1},
     {{17.9, 10.3}, {13.5, 14.3}}},
    {"trailing_commas.csv", "a,b,label,\n1,2,0,\n3,4,1,\n", {}, {0, 1}, {{1, 2}, {3, 4}}},
    {"trailing_tabs.tsv",
     "a\tb\tlabel\n1\t2\t0\n3\t4\t\n",
     {},
     {},
     {},
     ":3: column 3, 'label': no value ('')" + kDropHint},
    {"empty_fields.tsv", "a\tb\tlabel\n1\t\t0\n3\t4\t1\n", {.missing = kDrop}, {1}, {{3, 4}}},
    {"prices.csv",
     "rooms,price\n3,\"1,234\"\n4,\"2,500.50\"\n",
     {},
     {},
     {},
     ":2: column 2, 'price': '1,234' has commas between thousands; remove them"},
    {"car.csv",
     "vhigh,2,small,unacc\nlow,4,big,acc\nlow,5more,big,acc\nmed,5more,small,unacc\n",
     {},
     {1, -1, -1, 1},
     {{0, 0, 1, 1, 0, 0, 0, 1},
      {1, 0, 0, 0, 1, 0, 1, 0},
      {1, 0, 0, 0, 0, 1, 1, 0},
      {0, 1, 0, 0, 0, 1, 0, 1}}},
    {"mushrooms.csv",
     "class,cap-shape,odor\np,x,f\ne,x,n\ne,b,n\n",
     {},
     {1, -1, -1},
     {{0, 1, 1, 0}, {0, 1, 0, 1}, {1, 0, 0, 1}}},
    {"breast_cancer.csv",
     "1000,5,1,?,2\n1002,5,4,10,2\n1015,3,1,2,4\n",
     {.columns = "2-4", .missing = kDrop},
     {2, 4},
     {{5, 4, 10}, {3, 1, 2}}},
    {"nsl_kdd.csv",
     "0,tcp,-,181,normal\n2,udp,dns,0,attack\n0,tcp,-,239,normal\n",
     {},
     {1, -1, 1},
     {{0, 1, 0, 1, 0, 181}, {2, 0, 1, 0, 1, 0}, {0, 1, 0, 1, 0, 239}}},
    {"shuffled_index_of_pandas.csv",
     ",x0,x1,label\n17,0.5,1,0\n3,0.25,2,1\n",
     {},
     {0, 1},
     {{0.5, 1}, {0.25, 2}}},
    {"flights.csv",
     "delay|distance|cancelled\n-3|733|False\n12.5|1e3|True\n",
     {},
     {-1, 1},
     {{-3, 733}, {12.5, 1000}}},
    {"sensors.csv",
     "+1.5e-3,-2E+2,.5,0\n1e-320,-0,5.,1\n",
     {},
     {0, 1},
     {{0.0015, -200, 0.5}, {1e-320, 0, 5}}},
    {"sales.csv",
     "day,store,sales\n2021-01-01,7,10\n2021-01-02,7,12\n2021-01-01,8,9\n",
     {},
     {10, 12, 9},
     {{1, 0, 7}, {0, 1, 7}, {1, 0, 8}}},
    {"overflow.csv",
     "1,2,0\n3,inf,1\n",
     {},
     {},
     {},
     ":2: column 2: 'inf' is not finite; remove or replace it"},
    {"typo.csv",
     "h,w,y\n1,2,0\n3,4O,1\n5,6,1\n",
     {},
     {},
     {},
     ":3: column 2, 'w': '4O' is a text, but '2' in line 2 is a number; correct the column, or leave it out "
     "with "
     "problem.columns"},
    {"ragged.csv",
     "1,2,0\n1,2,3,0\n",
     {},
     {},
     {},
     ":2: 4 fields, but the first line has 3; all lines need the same number"},
    {"a9a.svm",
     "-1 3:1 11:1 14:1 \n+1 5:1 7:1 14:1 \n",
     {},
     {-1, 1},
     {{0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1}, {0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1}}},
    {"cadata.svm",
     "452600.0 1:8.325 2:41\r\n358500 1:8.301 2:21\r\n",
     {},
     {452600, 358500},
     {{8.325, 41}, {8.301, 21}}},
    {"letor.svm",
     "2 qid:10 1:0.03 2:0.5 #docid = GX008\n0 qid:10 1:0.25 # other\n1 qid:18 2:1\n",
     {},
     {2, 0, 1},
     {{0.03, 0.5}, {0.25, 0}, {0, 1}}},
    {"comments.libsvm", "# made by hand\n\n1 1:2\n# the end\n-1 2:3 # last\n", {}, {1, -1}, {{2, 0}, {0, 3}}},
    {"protein.svm", "1 1: .50 2:1\n2 1:1\n", {}, {1, 2}, {{0.5, 1}, {1, 0}}},
    {"from_zero.svm", "1 0:5 1:2\n", {}, {}, {}, ":1: index 0 in '0:5'; indices start at 1: add 1 to each"},
    {"unsorted.svm", "1 1:1\n-1 3:1 2:4\n", {}, {}, {}, ":2: index 2 after 3; sort the indices of each line"},
    {"multilabel.svm", "1,3 1:1\n", {}, {}, {}, ":1: the label '1,3' is not a number; correct it"},
};

DenseRows dense(const Dataset& data) {
  DenseRows rows;
  for (std::size_t r = 0; r < data.rows(); ++r) {
    rows.emplace_back(data.columns);
    for (std::size_t k = 0; k < data.row_columns(r).size(); ++k)
      rows[r][data.row_columns(r)[k]] = data.row_values(r)[k];
  }
  return rows;
}

class RealFiles : public ::testing::TestWithParam<RealFile> {};

TEST_P(RealFiles, AreReadOrRefusedWithTheLine) {
  const RealFile& file = GetParam();
  const TemporaryFolder folder;
  const std::string path = folder.write(file.name, file.text).string();
  const std::string source = (file.name.ends_with("svm") ? "libsvm:" : "csv:") + file.name;
  const auto read = [&](const KeepRow& keep) {
    return read_source(source, folder.path(), {}, 0, keep, SampleUse::kTraining, {file.options, nullptr});
  };
  for (const KeepRow& keep : {KeepRow(), KeepRow([](std::size_t) { return true; })}) {
    if (!file.error.empty()) {
      EXPECT_EQ(data_error([&] { read(keep); }), path + file.error);
      continue;
    }
    const Dataset data = read(keep);
    EXPECT_EQ(data.label, file.labels);
    EXPECT_EQ(dense(data), file.rows);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, RealFiles, ::testing::ValuesIn(kFiles), [](const auto& file) {
  return file.param.name.substr(0, file.param.name.find('.'));
});

}  // namespace
}  // namespace gradwire
